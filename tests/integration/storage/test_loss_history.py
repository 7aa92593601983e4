"""Losses in a real database of both majors: filters, pages, evidence of any form."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from rules.judgement import Finding
from rules.open_findings import Change, Step
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from service.storage.findings.history import FindingHistory
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.rounds import store_rounds
from tests.factories import CLUSTER_ID, NOON, at
from tests.integration.storage.given import made_round
from tests.unit.service.api.given import World
from tests.unit.service.api.losses.losses import BEYOND, PROVEN

pytestmark = pytest.mark.integration

LOST, POSSIBLY = "committed_records_lost", "records_possibly_lost"
BEYOND_END, OFFLINE = "committed_beyond_log_end", "partition_offline"
KEY: Final = ClusterKey("default", CLUSTER_ID)


def happened(
    rule: str, topic: str, evidence: Mapping[str, Any], *, again: bool = False, **labels: str
) -> Change:
    """Return the change that a breach of an event makes."""
    meta = RuleMeta(
        rule_id=rule,
        subject=SubjectKind.PARTITION,
        kind=Kind.EVENT,
        severity=Severity.CRITICAL,
        for_=timedelta(0),
        summary="For tests.",
    )
    names = {"cluster": "default", "topic": topic, "partition": "0", **labels}
    finding = Finding(
        rule=meta,
        labels=names,
        verdict=Verdict.BREACH,
        reason="lost",
        evidence=evidence,
    )
    return Change(
        step=Step.AGAIN if again else Step.OPENED,
        identity=finding.identity,
        before=Verdict.BREACH if again else None,
        after=Verdict.BREACH,
        finding=finding,
    )


@pytest.fixture
def client(database: Engine) -> TestClient:
    """Serve a history of one round a minute."""
    clusters.register(database, KEY, NOON)
    made = (
        [happened(LOST, "a_1", PROVEN)],
        [happened(POSSIBLY, "ax1", {"groups_beyond": "none", "depth": {"of": [1.5]}})],
        [happened(BEYOND_END, "100%", BEYOND, group="billing", partition="7")],
        [happened(OFFLINE, "a_1", {})],
        [happened(POSSIBLY, "nul\0", {"groups_beyond": [{"group": "nul\0"}, {"group": 1}]})],
        [happened(LOST, "a_1", PROVEN | {"certain_to": 110}, again=True)],
    )
    for number, changes in enumerate(made):
        store_rounds(database, [made_round(KEY, number + 1, changes, at(60 * number))])
    history = FindingHistory(lambda: database, "default")
    return TestClient(World().app(history=history), base_url="http://localhost")


def topics(client: TestClient, query: str) -> list[str]:
    answer = client.get(f"/api/v1/losses?state=all{query}")
    assert answer.status_code == 200, answer.text
    return [line["topic"] for line in lines(answer.json())]


def lines(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [line for incident in told["items"] for line in incident["partitions"]]


FILTERS: Final[tuple[tuple[str, list[str]], ...]] = (
    ("", ["a_1", "nul␀", "ax1", "100%"]),
    ("&class=possibly_lost", ["nul␀", "ax1"]),
    ("&class=unclean_election", []),
    ("&topic=a_1", ["a_1"]),
    ("&topic=a*1", ["a_1", "ax1"]),
    ("&topic=100%25", ["100%"]),
    ("&topic=1%25*", []),
    ("&topic=!*", []),
    ("&topic=nul%00", ["nul␀"]),
    ("&partition=7", ["100%"]),
    ("&group=bill*", ["a_1", "100%"]),
    ("&group=audit", ["a_1"]),
    ("&group=nul%00", ["nul␀"]),
    ("&group=*", ["a_1", "nul␀", "100%"]),
    ("&group=1", []),
    ("&since=2025-06-02T12:04:30Z", ["a_1"]),
    ("&since=2025-06-02T12:02:00Z&group=billing", ["a_1", "100%"]),
)


def test_filters_hold_in_the_database(client: TestClient) -> None:
    for query, expected in FILTERS:
        assert topics(client, query) == expected, query


def test_cursors_lead_through_all_losses_once(client: TestClient) -> None:
    url, found = "/api/v1/losses?state=all&limit=1", []
    while url:
        answer = client.get(url)
        found += [line["topic"] for line in lines(answer.json())]
        url = answer.links.get("next", {}).get("url", "")
    assert found == ["a_1", "nul␀", "ax1", "100%"]


def test_each_time_is_told_with_its_own_evidence(client: TestClient) -> None:
    (item,) = lines(client.get("/api/v1/losses?state=all&topic=a_1").json())
    assert (item["certain_to"], item["since"] < item["last_happened_at"]) == (110, True)
    told = client.get(f"/api/v1/losses/{item['id']}").json()
    assert [event["certain_to"] for event in told["events"]] == [100, 110]


def test_evidence_of_another_form_is_passed_on(client: TestClient) -> None:
    (item,) = lines(client.get("/api/v1/losses?state=all&topic=ax1").json())
    assert (item["groups_beyond"], item["more"]) == (None, {"depth": {"of": [1.5]}})
    assert client.get("/api/v1/findings?state=all").status_code == 200


def test_a_finding_of_a_group_is_found_by_the_topics_that_it_shows(database: Engine) -> None:
    clusters.register(database, KEY, NOON)
    shown = {"partitions": [{"topic": "audit", "partition": 1}, {"topic": "a_1", "partition": 0}]}
    changes = [
        happened("consumer_group_rewound", "", shown, group="billing"),
        happened("consumer_group_stalled", "", {"partitions": [{"topic": 1}, "a_1"]}, group="odd"),
        happened(OFFLINE, "a_1", {}),
    ]
    store_rounds(database, [made_round(KEY, 1, changes, NOON)])
    history = FindingHistory(lambda: database, "default")
    client = TestClient(World().app(history=history), base_url="http://localhost")
    for query, expected in (
        ("a_1", {OFFLINE, "consumer_group_rewound"}),
        ("aud*", {"consumer_group_rewound"}),
    ):
        items = client.get(f"/api/v1/findings?state=all&topic={query}").json()["items"]
        assert {item["rule"] for item in items} == expected
