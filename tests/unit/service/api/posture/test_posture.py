"""Posture over HTTP: what is wrong or not known, filters, counts and pages."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.snapshot import Snapshot
from tests.factories import NOON
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.posture.given import DENIED, Topic, cluster
from tests.unit.service.api.given import client_of

SINGLE = Topic(replicas=(1,))
SEEN = cluster(
    {
        "orders-1": SINGLE,
        "orders-2": SINGLE,
        "refunds": Topic(settings={"min.insync.replicas": "1"}),
    },
    failed_topics={"orders-2": DENIED},
)


def page(query: str = "", seen: Snapshot = SEEN) -> Any:
    """Return one page of the list."""
    client = client_of(snapshot=seen, view=view_of([seen]), at=NOON)
    response = client.get(f"/api/v1/posture{query}")
    assert response.status_code == 200, response.text
    return response.json()


def names(document: Any) -> list[tuple[str, str, str]]:
    return [(row["check"], row["name"], row["verdict"]) for row in document["items"]]


def test_a_line_says_what_it_is_what_follows_and_how_to_set_it() -> None:
    [row] = page("?check=topic_min_insync_replicas&topic=refunds")["items"]
    assert row.pop("consequence").startswith("While the other replicas are out of the ISR")
    assert row.pop("fix").endswith("--entity-name refunds --add-config min.insync.replicas=2")
    assert row == {
        "check": "topic_min_insync_replicas",
        "scope": "topic",
        "name": "refunds",
        "setting": "min.insync.replicas",
        "value": "1",
        "source": "topic",
        "verdict": "wrong",
        "severity": "info",
        "reason": "one_acknowledges",
        "page": "posture/topic_min_insync_replicas.md",
        "evidence": {},
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "?topic=orders-*",
            [
                ("topic_message_size", "orders-2", "unknown"),
                ("topic_replication", "orders-1", "wrong"),
                ("topic_replication", "orders-2", "wrong"),
            ],
            id="of some topics",
        ),
        pytest.param(
            "?topic=orders-*&verdict=unknown",
            [("topic_message_size", "orders-2", "unknown")],
            id="of a verdict",
        ),
        pytest.param(
            "?check=topic_replication&all=true",
            [
                ("topic_replication", "orders-1", "wrong"),
                ("topic_replication", "orders-2", "wrong"),
                ("topic_replication", "refunds", "right"),
            ],
            id="what is right too",
        ),
        pytest.param("?topic=nobody", [], id="no such topic"),
    ],
)
def test_filters(query: str, expected: list[tuple[str, str, str]]) -> None:
    assert names(page(query)) == expected


def test_pages_follow_each_other_and_have_the_same_counts() -> None:
    whole = page("?all=true&limit=1000")
    rows: list[Any] = []
    counts: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        part = page(f"?all=true&limit=7{f'&cursor={cursor}' if cursor else ''}")
        rows += part["items"]
        counts.append(part["checks"])
        cursor = part["next"]
    assert rows == whole["items"]
    assert all(checks == whole["checks"] for checks in counts)


def test_counts_are_of_every_verdict_and_mark_what_only_clients_know() -> None:
    by_check = {row["check"]: row for row in page()["checks"]}
    replication, acks = by_check["topic_replication"], by_check["client_acks"]
    assert (replication["right"], replication["wrong"], replication["unknown"]) == (1, 2, 0)
    assert (acks["unknown"], acks["client_only"], replication["client_only"]) == (1, True, False)
    assert page("?topic=nobody")["checks"] == []


def test_without_a_round_there_is_no_answer() -> None:
    assert client_of(at=NOON).get("/api/v1/posture").status_code == 503
