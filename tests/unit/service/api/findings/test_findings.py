"""Findings: open ones from memory, all others from the database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.verdict import Severity, Verdict
from service.api.findings.open_list import OpenList
from service.api.findings.views import finding_id
from service.rounds.latest import Latest
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.storage.findings.findings import StoredTransition
from tests.factories import CLUSTER_ID, at
from tests.unit.service.api.given import (
    AWAY,
    FakeHistory,
    World,
    client_of,
    no_service_state,
    open_finding,
    opened,
    past,
    service_state,
)

LABELS = {"topic": "orders", "cluster": "default", "partition": "0"}
SUMMARY = "A partition has no leader."
ID = "partition_offline-733c6ba4140170b9"


def topics(told: dict[str, Any]) -> list[str]:
    return [item["labels"]["topic"] for item in told["items"]]


def world(*entries: Any, **history: Any) -> World:
    return World(
        latest=Latest(service_state(open_findings=opened(*entries))), history=FakeHistory(**history)
    )


def test_an_id_lasts_whatever_the_order_of_the_labels() -> None:
    assert finding_id("partition_offline", LABELS) == ID
    assert finding_id("partition_offline", dict(sorted(LABELS.items()))) == ID
    assert finding_id("partition_offline", LABELS | {"topic": "audit"}) != ID


def test_open_findings_tell_all_that_is_known() -> None:
    told = client_of(open_findings=opened(open_finding())).get("/api/v1/findings").json()
    assert told == {
        "as_of": "2025-06-02T12:00:00Z",
        "is_current": True,
        "storage": "stored",
        "next": None,
        "items": [
            {
                "id": ID,
                "cluster_id": CLUSTER_ID,
                "rule": "partition_offline",
                "summary": SUMMARY,
                "severity": "critical",
                "kind": "state",
                "labels": LABELS,
                "verdict": "breach",
                "reason": "no_leader",
                "evidence": {"leader_epoch": 5, "high_watermark": None},
                "since": "2025-06-02T12:00:00Z",
                "last_breach_at": "2025-06-02T12:00:15Z",
                "last_judged_at": "2025-06-02T12:00:30Z",
                "state": "open",
                "subject_gone": False,
                "ended_at": None,
                "end_reason": None,
            }
        ],
    }


def test_open_findings_need_no_database() -> None:
    made = world(open_finding(), error=AWAY)
    assert made.client().get("/api/v1/findings").status_code == 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["c", "b", "a"]),
        ("?severity=warning", ["b"]),
        ("?verdict=unknown", ["c"]),
        ("?rule=partition_offline", ["c", "a"]),
        ("?rule=partition_offline&verdict=breach", ["a"]),
        ("?verdict=ok", []),
        ("?topic=b", ["b"]),
        ("?topic=*&severity=warning", ["b"]),
        ("?topic=b*&verdict=unknown", []),
    ],
)
def test_open_findings_are_filtered_newest_first(query: str, expected: list[str]) -> None:
    labels = (("cluster", "default"), ("topic", "b"))
    made = world(
        open_finding("a", since=0),
        open_finding(
            "b", since=1, identity=("high_watermark_stuck", labels), severity=Severity.WARNING
        ),
        open_finding("c", since=2, verdict=Verdict.UNKNOWN),
    )
    assert topics(made.client().get(f"/api/v1/findings{query}").json()) == expected


@pytest.mark.parametrize(("pattern", "many"), [("orders", 1), ("or*", 1), ("order", 0), ("1", 0)])
def test_a_finding_of_a_group_is_found_by_the_topics_that_it_shows(pattern: str, many: int) -> None:
    labels = (("cluster", "default"), ("group", "billing"))
    shown = [{"topic": "audit", "partition": 1}, {"topic": "orders", "partition": 0}]
    made = world(
        open_finding(
            identity=("consumer_group_stalled", labels), evidence={"partitions": shown, "lag": 1}
        ),
        open_finding(identity=("consumer_group_rewound", labels), evidence={"partitions": 1}),
    )
    items = made.client().get(f"/api/v1/findings?topic={pattern}").json()["items"]
    assert [item["rule"] for item in items] == ["consumer_group_stalled"] * many


@pytest.mark.parametrize("state", ["open", "ended", "all"])
def test_pages_lead_through_all_findings_once(state: str) -> None:
    names = [f"t{number}" for number in range(7)]
    made = world(
        *(open_finding(name, since=number // 3) for number, name in enumerate(names)),
        findings=[past(number, name) for number, name in enumerate(names, 1)],
    )
    client, url, found = made.client(), f"/api/v1/findings?limit=3&state={state}", list[str]()
    while url:
        answer = client.get(url)
        found += topics(answer.json())
        url = answer.links.get("next", {}).get("url", "")
    assert sorted(found) == names
    assert found[0] == "t6"


def test_ended_findings_say_when_and_why() -> None:
    (told,) = world(findings=[past()]).client().get("/api/v1/findings?state=ended").json()["items"]
    assert (told["id"], told["state"], told["verdict"]) == (ID, "ended", "ok")
    assert (told["ended_at"], told["end_reason"]) == ("2025-06-02T12:01:01Z", "ok")
    assert told["summary"] == SUMMARY


def test_a_finding_of_a_rule_that_was_withdrawn_has_no_summary() -> None:
    made = world(findings=[past(rule_id="of_the_past")])
    (told,) = made.client().get("/api/v1/findings?state=ended").json()["items"]
    assert (told["rule"], told["summary"]) == ("of_the_past", None)


def test_filters_of_stored_findings_go_to_the_database() -> None:
    made = world()
    query = "state=ended&rule=partition_offline&severity=info&verdict=unknown&topic=b*&limit=7"
    assert made.client().get(f"/api/v1/findings?{query}").status_code == 200
    (asked,) = made.history.queries
    assert (asked.only_ended, asked.rule_id, asked.topic) == (True, "partition_offline", "b*")
    assert (asked.severity, asked.verdict, asked.after) == (Severity.INFO, Verdict.UNKNOWN, None)


def test_stored_findings_are_as_of_the_last_round_that_was_stored() -> None:
    waiting = PersistenceStatus(
        state=PersistenceState.WAITING, stored_at=at(-300), waiting_rounds=20
    )
    told = client_of(persistence=waiting).get("/api/v1/findings?state=all").json()
    assert (told["as_of"], told["is_current"]) == ("2025-06-02T11:55:00Z", False)
    assert told["storage"] == "waiting"


def test_a_cursor_with_an_impossible_time_is_rejected() -> None:
    client = world(findings=[past(1), past(2)]).client()
    from_the_end_of_time = "WyJmaW5kaW5ncy1hbGwiLDkyMjMzNzIwMzY4NTQ3NzU4MDcsMV0"
    answer = client.get(f"/api/v1/findings?state=all&cursor={from_the_end_of_time}")
    assert answer.status_code == 400


def test_before_the_first_round_no_finding_is_not_an_answer() -> None:
    answer = World(latest=Latest(no_service_state())).client().get("/api/v1/findings")
    assert answer.status_code == 503


def step(seconds: float, before: Verdict | None, after: Verdict | None) -> StoredTransition:
    return StoredTransition(
        finding=1,
        at=at(seconds),
        from_verdict=before,
        to_verdict=after,
        reason="said",
        evidence={"leader_epoch": 5},
    )


STEPS = (step(1, None, Verdict.BREACH), step(61, Verdict.BREACH, None))


def test_an_ended_finding_tells_its_story() -> None:
    told = world(findings=[past()], steps=STEPS).client().get(f"/api/v1/findings/{ID}").json()
    assert (told["finding"]["state"], told["error"]) == ("ended", None)
    assert told["transitions"][0] == {
        "at": "2025-06-02T12:00:01Z",
        "from_verdict": None,
        "to_verdict": "breach",
        "reason": "said",
        "evidence": {"leader_epoch": 5},
    }
    assert told["transitions"][1]["to_verdict"] is None


def test_an_open_finding_is_told_from_memory_with_its_story() -> None:
    made = world(open_finding(), findings=[past()], steps=STEPS)
    told = made.client().get(f"/api/v1/findings/{ID}").json()
    assert (told["finding"]["state"], len(told["transitions"])) == ("open", 2)


def test_an_open_finding_is_told_without_its_story_while_the_database_is_away() -> None:
    told = world(open_finding(), error=AWAY).client().get(f"/api/v1/findings/{ID}").json()
    assert told["finding"]["state"] == "open"
    assert (told["transitions"], told["error"]) == (None, str(AWAY))


def test_an_open_finding_that_is_not_stored_yet_has_no_story() -> None:
    told = world(open_finding()).client().get(f"/api/v1/findings/{ID}").json()
    assert (told["transitions"], told["error"]) == (None, "it is not stored yet")


def test_the_story_of_another_cluster_with_the_same_name_is_not_told() -> None:
    entry = open_finding()
    another = replace(past(), cluster_id="another")
    made = world(entry, findings=[another], steps=STEPS)
    assert made.client().get(f"/api/v1/findings/{ID}").json()["transitions"] is None
    made.latest.publish(service_state(open_findings=opened(entry), snapshot=None))
    told = made.client().get(f"/api/v1/findings/{ID}").json()
    assert len(told["transitions"]) == 2, "no broker has told this cluster's id yet"


def test_without_the_database_an_ended_finding_is_unavailable() -> None:
    answer = world(error=AWAY).client().get(f"/api/v1/findings/{ID}")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


@pytest.mark.parametrize(
    "name", [ID[:-1], ID + "0", ID.upper(), "-0123456789abcdef", "x", ID + "%0A", "%25-" + ID[-16:]]
)
def test_what_is_no_id_is_not_found(name: str) -> None:
    assert world(findings=[past()]).client().get(f"/api/v1/findings/{name}").status_code == 404


def test_a_name_with_nul_is_found_under_the_name_that_is_stored() -> None:
    made = world(open_finding("nul\0"))
    (told,) = made.client().get("/api/v1/findings").json()["items"]
    assert told["labels"]["topic"] == "nul␀"
    assert made.client().get(f"/api/v1/findings/{told['id']}").status_code == 200


def test_open_findings_are_sorted_once_per_round() -> None:
    open_list, findings = OpenList(), opened(open_finding("a"), open_finding("b", since=-1))
    first = open_list.newest_first(service_state(open_findings=findings))
    assert [dict(entry.identity[1])["topic"] for entry in first.items] == ["b", "a"]
    stored = service_state(open_findings=findings, persistence=PersistenceStatus())
    assert open_list.newest_first(stored) is first
    assert open_list.newest_first(service_state(open_findings=dict(findings))) is not first
