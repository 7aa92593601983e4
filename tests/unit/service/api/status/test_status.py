"""The status tells how rounds, storing and rules go, before the first round too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from rules.facts.broker_log import BrokerLog
from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure
from rules.judgement import Judgement, NamedSubjects, Reason
from rules.verdict import SubjectKind, Verdict
from service.metrics.log_stats import LogStats
from service.rounds.latest import Latest, RoundOutcome
from service.rounds.persistence import PersistenceState, PersistenceStatus
from tests.factories import CLUSTER_ID, NOON, at, gap, snapshot
from tests.scraped import PAGE, endpoint_state
from tests.unit.service.api.given import World, client_of, no_service_state, open_finding, opened


class Why(Reason):
    SAID = "said"


def judged(*verdicts: Verdict) -> Judgement:
    subjects = tuple({"cluster": "default", "topic": str(n)} for n in range(len(verdicts)))
    return Judgement(
        rule=RULES[0].meta,
        subjects=NamedSubjects(SubjectKind.PARTITION, subjects),
        verdicts=np.array(verdicts, np.int8),
        reasons=(Why.SAID,),
        reason=np.zeros(len(verdicts), np.int8),
    )


def test_the_status_of_a_quiet_service() -> None:
    told = client_of().get("/api/v1/status").json()
    assert (told["as_of"], told["is_current"]) == ("2025-06-02T12:00:00Z", True)
    assert (told["version"], told["cluster"], told["cluster_id"]) == (
        "1.2.3",
        "default",
        CLUSTER_ID,
    )
    assert (told["started_at"], told["now"]) == ("2025-06-02T11:59:00Z", "2025-06-02T12:00:20Z")
    assert told["round"] == {
        "number": 4,
        "at": "2025-06-02T12:00:00Z",
        "outcome": "complete",
        "error": None,
        "took_seconds": 0.25,
        "interval_seconds": 15.0,
        "age_seconds": 20.0,
    }
    assert told["storage"] == {
        "state": "stored",
        "error": None,
        "is_final": False,
        "waiting_rounds": 0,
        "lost_rounds": 0,
        "lost_transitions": 0,
        "rejected_rows": {},
        "rejected_row": None,
        "stored_at": "2025-06-02T12:00:00Z",
        "took_seconds": 0.01,
        "alerts_error": None,
    }
    assert (told["gaps_by_cause"], told["restarts"]) == ({}, {})


def test_each_source_of_log_lines_tells_how_it_goes() -> None:
    read = LogStats(lines=7, unparsed=1, lost_bytes=3, last_line_at=NOON, unreadable=("Out of",))
    away = LogStats(error="/b.log: permission denied")
    told = client_of(logs={"b": away, "a": read}).get("/api/v1/status").json()["broker_logs"]
    assert told == [
        {
            "source": "a",
            "lines": 7,
            "unparsed": 1,
            "unreadable": ["Out of"],
            "lost_bytes": 3,
            "last_line_at": "2025-06-02T12:00:00Z",
            "error": None,
        },
        {
            "source": "b",
            "lines": 0,
            "unparsed": 0,
            "unreadable": [],
            "lost_bytes": 0,
            "last_line_at": None,
            "error": "/b.log: permission denied",
        },
    ]


def test_it_is_told_whether_log_lines_wait_as_of_the_last_round() -> None:
    behind = snapshot(broker_log=BrokerLog(is_read=True, is_behind=True))
    told = [
        client_of(snapshot=seen).get("/api/v1/status").json()["broker_logs_behind"]
        for seen in (behind, snapshot(), None)
    ]
    assert told == [True, False, None]


def test_each_endpoint_of_metrics_tells_how_it_goes() -> None:
    silent = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
    away = endpoint_state("http://app-2", answered_at=None, is_up=False, is_fresh=False)
    states = (endpoint_state(), replace(away, failures=(silent,), samples=0))
    told = client_of(endpoints=states).get("/api/v1/status").json()["scrapes"]
    assert told == [
        {
            "endpoint": PAGE,
            "kind": "page",
            "is_up": True,
            "is_fresh": True,
            "answered_at": "2025-06-02T12:00:00Z",
            "took_seconds": 0.01,
            "samples": 4,
            "errors": [],
        },
        {
            "endpoint": "http://app-2",
            "kind": "page",
            "is_up": False,
            "is_fresh": False,
            "answered_at": None,
            "took_seconds": 0.01,
            "samples": 0,
            "errors": ["no whole answer within 5 s"],
        },
    ]


def test_rules_tell_their_verdicts_and_open_findings() -> None:
    said = judged(Verdict.OK, Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH)
    entry = open_finding(identity=(RULES[0].meta.rule_id, (("cluster", "default"),)))
    client = client_of(judgements=(said,), open_findings=opened(entry))
    first, *others = client.get("/api/v1/status").json()["rules"]
    assert first == {
        "rule": RULES[0].meta.rule_id,
        "severity": "critical",
        "ok": 2,
        "unknown": 1,
        "breach": 1,
        "open_findings": 1,
    }
    assert [rule["rule"] for rule in others][-1] == SELF_MONITORING.rule_id
    assert {rule["ok"] for rule in others} == {None}, "they were not asked"


def test_before_the_first_round_nothing_is_known() -> None:
    answer = World(latest=Latest(no_service_state())).client().get("/api/v1/status")
    told = answer.json()
    assert answer.status_code == 200
    assert (told["as_of"], told["is_current"], told["gaps_by_cause"]) == (None, False, None)
    assert told["round"]["age_seconds"] is None
    assert told["storage"]["state"] == "not_loaded"


@pytest.mark.parametrize(("state", "expected"), [("not_loaded", None), ("waiting", 1)])
def test_how_many_findings_are_open_is_not_known_before_the_stored_ones_are_loaded(
    state: str, expected: int | None
) -> None:
    """A rule that has found something since the start does not know of what was open before."""
    entry = open_finding(identity=(RULES[0].meta.rule_id, (("cluster", "default"),)))
    status = PersistenceStatus(state=PersistenceState(state))
    client = client_of(open_findings=opened(entry), persistence=status)
    first, second, *_ = client.get("/api/v1/status").json()["rules"]
    assert first["open_findings"] == expected
    assert second["open_findings"] == (None if expected is None else 0)


def test_after_a_failed_round_older_data_says_so() -> None:
    client = client_of(
        at=at(15),
        outcome=RoundOutcome.FAILED,
        error="no bootstrap address answered",
        snapshot=snapshot(gaps=(gap(), gap(cause=GapCause.NO_LEADER), gap())),
        persistence=PersistenceStatus(
            state=PersistenceState.WAITING, error="away", waiting_rounds=3
        ),
        restarts={"rounds": 2},
    )
    told = client.get("/api/v1/status").json()
    assert (told["as_of"], told["is_current"]) == ("2025-06-02T12:00:00Z", False)
    assert told["round"]["error"] == "no bootstrap address answered"
    assert told["gaps_by_cause"] == {"no_leader": 1, "timeout": 2}
    assert (told["storage"]["state"], told["storage"]["waiting_rounds"]) == ("waiting", 3)
    assert told["restarts"] == {"rounds": 2}
    assert client.get("/api/v1/partitions").json()["is_current"] is False
    assert NOON.isoformat().startswith(told["as_of"].removesuffix("Z"))
