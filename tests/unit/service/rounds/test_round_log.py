"""What a round says in the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rules.facts.broker_log import (
    BrokerLog,
    LogSource,
    Origin,
    SequenceForm,
    SequenceRejected,
)
from rules.judgement import Finding
from rules.open_findings import Change, EndReason, Step
from rules.remembering import view_of_round
from rules.verdict import Severity, Verdict
from service.metrics.log_stats import LogStats
from service.rounds.latest import RoundOutcome
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.rounds.round_log import MAX_FINDING_LINES, RoundLog
from service.runtime.events import Event
from service.storage.database.rejections import RejectedRow, RowKind
from tests.factories import NOON, change_event, gap, snapshot
from tests.integration.storage.given import judged, meta
from tests.unit.service.rounds.unseen import made_round, service_state
from tests.unit.service.runtime.recorded_log import RecordedLog

STORED = PersistenceStatus(state=PersistenceState.STORED, stored_at=NOON)


def change(topic: str = "orders", **overrides: Any) -> Change:
    """Return a finding that opened."""
    labels = {"cluster": "default", "topic": topic}
    said = Finding(
        rule=meta(), labels=labels, verdict=Verdict.BREACH, reason="unchanged", evidence={"lag": 7}
    )
    base = Change(
        step=Step.OPENED, identity=said.identity, before=None, after=Verdict.BREACH, finding=said
    )
    return replace(base, **overrides)


def told(*changes: Change, **shown: Any) -> RecordedLog:
    """Return what is logged of one round that was stored."""
    made = RecordedLog()
    RoundLog(made.log).log_round(
        made_round(replace(service_state(), **{"persistence": STORED, **shown}), changes)
    )
    return made


def test_a_round_is_one_event_with_its_counts() -> None:
    seen = snapshot(taken_at=NOON, gaps=(gap(),))
    verdicts = {"a": Verdict.BREACH, "b": Verdict.UNKNOWN, "c": Verdict.UNKNOWN, "d": Verdict.OK}
    made = told(
        snapshot=seen,
        outcome=RoundOutcome.GAPS,
        took_seconds=0.12345,
        judgements=(judged(verdicts),),
        persistence=replace(STORED, waiting_rounds=2),
    )
    (event,) = made.of(Event.ROUND)
    assert event == {
        "level": "info",
        "cluster": "default",
        "number": 1,
        "outcome": "gaps",
        "took_seconds": 0.123,
        "partitions": 3,
        "groups": 0,
        "commits": 0,
        "requests": 5,
        "gaps": 1,
        "unknown": 2,
        "breach": 1,
        "open_findings": 0,
        "waiting_rounds": 2,
    }


def test_open_findings_are_not_counted_before_the_stored_ones_are_loaded() -> None:
    (event,) = told(persistence=PersistenceStatus()).of(Event.ROUND)
    assert "open_findings" not in event


def test_a_round_that_failed_warns_and_counts_nothing_of_an_older_one() -> None:
    older = snapshot(taken_at=NOON - timedelta(seconds=15))
    (event,) = told(error="no bootstrap address answered", snapshot=older).of(Event.ROUND)
    assert (event["level"], event["outcome"]) == ("warning", "failed")
    assert event["why"] == "no bootstrap address answered"
    assert "partitions" not in event


def test_a_finding_that_opens_warns_with_its_evidence() -> None:
    assert told(change()).of(Event.FINDING) == [
        {
            "level": "warning",
            "rule": "some_rule",
            "cluster": "default",
            "topic": "orders",
            "step": "opened",
            "verdict": "breach",
            "reason": "unchanged",
            "severity": "warning",
            "evidence": {"lag": 7},
        }
    ]


@pytest.mark.parametrize(
    ("ended", "after", "verdict"),
    [(EndReason.OK, Verdict.OK, "ok"), (EndReason.SUBJECT_GONE, None, None)],
)
def test_a_finding_that_ends_says_why(
    ended: EndReason, after: Verdict | None, verdict: str | None
) -> None:
    gone = change(step=Step.ENDED, before=Verdict.BREACH, after=after, end_reason=ended)
    (event,) = told(gone).of(Event.FINDING)
    assert (event["level"], event["step"], event["reason"]) == ("info", "ended", ended)
    assert event.get("verdict") == verdict


def test_what_is_as_it_was_is_not_told() -> None:
    assert told(change(step=Step.STILL, before=Verdict.BREACH)).of(Event.FINDING) == []


def test_an_event_that_happens_again_is_told_with_its_own_evidence() -> None:
    (event,) = told(change(step=Step.AGAIN, before=Verdict.BREACH)).of(Event.FINDING)
    assert (event["level"], event["step"], event["evidence"]) == ("warning", "again", {"lag": 7})


def test_a_rule_about_a_rule_is_told_under_its_own_name() -> None:
    about = (("cluster", "default"), ("rule", "high_watermark_stuck"))
    (event,) = told(change(identity=("observation_stale", about))).of(Event.FINDING)
    assert (event["rule"], event["about_rule"]) == ("observation_stale", "high_watermark_stuck")


def test_a_row_that_the_database_rejects_is_logged_once_while_it_comes_again() -> None:
    recorded = RecordedLog()
    log = RoundLog(recorded.log)

    def log_rejected(*names: str) -> int:
        rows = [
            RejectedRow(kind=RowKind.FINDING, name=name, why="no such number") for name in names
        ]
        log.log_round(replace(made_round(service_state()), rejected_rows=rows))
        return len(recorded.of(Event.ROW_REJECTED))

    assert [log_rejected("a"), log_rejected("a", "b"), log_rejected(), log_rejected("a")] == [
        1,
        2,
        2,
        3,
    ]
    assert recorded.of(Event.ROW_REJECTED)[0] == {
        "level": "error",
        "kind": "finding",
        "row": "a",
        "why": "no such number",
    }
    log_rejected(*(str(number) for number in range(50)))
    assert recorded.of(Event.ROWS_LEFT_OUT) == [{"level": "error", "count": 40}]


def test_thousands_of_findings_are_counted_and_not_listed() -> None:
    made = told(*(change(f"topic-{number}") for number in range(10_000)))
    assert len(made.of(Event.FINDING)) == MAX_FINDING_LINES
    assert made.of(Event.FINDINGS_LEFT_OUT)[0]["count"] == 10_000 - MAX_FINDING_LINES
    assert told(*[change()] * MAX_FINDING_LINES).of(Event.FINDINGS_LEFT_OUT) == []


def test_of_too_many_findings_the_most_severe_are_listed() -> None:
    many = [change(f"topic-{number}") for number in range(60)]
    mild = [replace(one, last_severity=Severity.WARNING) for one in many]
    worst = replace(change("payments"), last_severity=Severity.CRITICAL)
    lines = told(*mild, worst).of(Event.FINDING)
    assert lines[0]["topic"] == "payments"
    assert {line["topic"] for line in lines[1:]} < {f"topic-{number}" for number in range(60)}


def test_a_step_of_the_clock_and_a_late_memory_are_told() -> None:
    made = RecordedLog()
    late = made_round(replace(service_state(), persistence=STORED), was_loaded=True)
    stepped = replace(late.watched, clock_step=timedelta(minutes=-5))
    RoundLog(made.log).log_round(replace(late, watched=stepped))
    assert made.of(Event.CLOCK_STEP) == [{"level": "warning", "seconds": -300.0}]
    assert made.of(Event.MEMORY_LOADED) == [{"level": "info", "open_findings": 0}]


def test_only_changes_of_how_storing_goes_are_told() -> None:
    made = RecordedLog()
    log = RoundLog(made.log)
    away = PersistenceStatus(state=PersistenceState.WAITING, error="connection refused")
    rejected = PersistenceStatus(state=PersistenceState.REJECTED, error="read-only")
    unread = PersistenceStatus(error="connection refused")
    for status in (unread, unread, STORED, STORED, away, away, rejected, STORED):
        log.log_round(made_round(replace(service_state(), persistence=status)))
    assert [name for name in made.names if name != Event.ROUND] == [
        Event.MEMORY_AWAY,
        Event.STORE_AVAILABLE,
        Event.STORE_UNAVAILABLE,
        Event.STORE_UNAVAILABLE,
        Event.STORE_AVAILABLE,
    ]
    assert [event["why"] for event in made.of(Event.STORE_UNAVAILABLE)] == [
        "connection refused",
        "read-only",
    ]


def test_a_round_counts_log_lines_where_any_are_read() -> None:
    rejected = SequenceRejected(
        origin=Origin(source="a"),
        form=SequenceForm.OUT_OF_ORDER,
        producer_id=1,
        topic="orders",
        partition=0,
        offset=3,
        incoming_sequence=27,
        current_sequence=2,
    )
    log = BrokerLog(
        is_read=True,
        events=(rejected,),
        sources=(LogSource(name="a", lines=5), LogSource(name="b", lines=2, unparsed=3)),
    )
    seen = snapshot(taken_at=NOON, broker_log=log)
    (event,) = told(snapshot=seen, outcome=RoundOutcome.COMPLETE).of(Event.ROUND)
    counts = {name: value for name, value in event.items() if name.startswith("log_")}
    assert counts == {"log_lines": 7, "log_events": 1, "log_lines_unparsed": 3}


def test_a_round_says_that_more_log_lines_wait() -> None:
    seen = snapshot(taken_at=NOON, broker_log=BrokerLog(is_read=True, is_behind=True))
    (event,) = told(snapshot=seen, outcome=RoundOutcome.GAPS).of(Event.ROUND)
    assert event["log_is_behind"] is True


def test_a_source_of_log_lines_is_told_when_its_error_changes() -> None:
    made = RecordedLog()
    log = RoundLog(made.log)
    for error in (None, "denied", "denied", "gone", None, None):
        shown = replace(service_state(), logs={"a": LogStats(error=error)}, persistence=STORED)
        log.log_round(made_round(shown))
    assert made.of(Event.LOG_SOURCE_AWAY) == [
        {"level": "warning", "source": "a", "why": why} for why in ("denied", "gone")
    ]
    assert made.of(Event.LOG_SOURCE_BACK) == [{"level": "info", "source": "a"}]


def test_a_change_of_the_cluster_is_one_event_in_words() -> None:
    made = RecordedLog()
    result = made_round(replace(service_state(), persistence=STORED), ())
    view = replace(view_of_round(snapshot(), None), change_events=(change_event("orders"),))
    watched = replace(result.watched, view=view)
    RoundLog(made.log).log_round(replace(result, watched=watched))
    [event] = made.of(Event.CHANGE)
    assert event["kind"] == "partitions_added"
    assert event["summary"] == "topic orders: partitions added, from 3 to 6"
