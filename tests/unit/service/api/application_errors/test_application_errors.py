"""Errors that applications logged over HTTP: filters, pages, and what is known of their producers and the reverse."""

from __future__ import annotations

from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from rules.exceptions.problems import Problem
from service.observe.application_errors import KnownErrors
from tests.application_lines import broker_side, fatal, problem, retried
from tests.factories import at
from tests.unit.service.api.given import World, open_finding, opened, service_state
from tests.unit.service.api.sequences.sequences import REORDERING, after
from tests.unit.service.api.transactions.test_transactions import seen

PATH: Final = "/api/v1/application-errors"
GROUPED: Final = (
    "2025-06-02 12:00:00,000 WARN [Consumer clientId=c-1, groupId=billing] Offset commit failed on partition orders-3 "
    "at offset 7: org.apache.kafka.common.errors.RebalanceInProgressException: words"
)
PROBLEMS: Final = (
    problem(fatal("pay/☃"), received_at=at(3)),
    problem(retried("orders", 0), "shop", received_at=at(2)),
    problem(broker_side(9), received_at=at(1)),
    problem(GROUPED, "billing", received_at=at(0)),
)


def client_of(*problems: Problem, **state: Any) -> TestClient:
    world = World()
    world.errors.known = KnownErrors(problems=problems, is_loaded=True, rejected_lines=5)
    world.latest.publish(service_state(**state))
    return world.client()


def get(client: TestClient, path: str = PATH, **query: Any) -> dict[str, Any]:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_an_error_is_shown_with_what_it_means() -> None:
    page = get(client_of(*PROBLEMS))
    assert (page["is_current"], page["rejected_lines"], page["next"]) == (True, 5, None)
    row = page["items"][0]
    named = (
        "error",
        "meaning",
        "records",
        "transactional_producer",
        "idempotent_producer",
        "outcome",
        "client",
    )
    assert [row[name] for name in named] == [
        "PRODUCER_FENCED", "producer_fenced", "neither", "fatal", None, "fatal", "java",
    ]  # fmt: skip
    assert (row["application"], row["transactional_id"], row["count"]) == ("payments", "pay/☃", 1)
    assert row["examples"][0]["text"].startswith("2025-06-02 12:00:00,000 INFO [Producer")
    assert row["action"]
    assert row["check"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["payments", "shop", "payments", "billing"]),
        ({"error": "PRODUCER_FENCED"}, ["payments"]),
        ({"error": "producer_fenced"}, ["payments"]),
        ({"application": "pay*"}, ["payments", "payments"]),
        ({"client_id": "p-1"}, ["payments", "shop"]),
        ({"transactional_id": "pay/*"}, ["payments"]),
        ({"producer_id": 9}, ["payments"]),
        ({"group": "billing"}, ["billing"]),
        ({"topic": "orders"}, ["shop", "payments", "billing"]),
        ({"since": at(2).isoformat()}, ["payments", "shop"]),
        ({"topic": "nothing"}, []),
    ],
)
def test_filters_show_what_is_known_to_match(query: dict[str, Any], found: list[str]) -> None:
    rows = get(client_of(*PROBLEMS), **query)["items"]
    assert [row["application"] for row in rows] == found


def test_pages_follow_each_other_and_an_unknown_parameter_is_rejected() -> None:
    client = client_of(*PROBLEMS)
    first = get(client, limit=3)
    second = get(client, limit=3, cursor=first["next"])
    assert [row["id"] for row in first["items"] + second["items"]] == [one.id for one in PROBLEMS]
    assert second["next"] is None
    assert client.get(PATH, params={"topik": "orders"}).status_code == 422
    assert client.get(f"{PATH}/0123456789ab").status_code == 404


def test_the_transaction_of_its_producer_is_shown_and_the_transaction_shows_the_error() -> None:
    view = seen()
    client = client_of(*PROBLEMS, snapshot=view.snapshot, view=view, at=view.now)
    by_id, by_topic, by_producer, group = (
        get(client, f"{PATH}/{one.id}")["transactions"] for one in PROBLEMS
    )
    assert [(row["transactional_id"], row["match"]) for row in by_id] == [
        ("pay/☃", "transactional_id")
    ]
    assert {row["match"] for row in by_topic} == {"may_be_of_it"}
    assert [row["match"] for row in by_producer] == ["producer_id"]
    assert group == []
    rows = get(client, "/api/v1/transactions")["items"]
    errors = {row["transactional_id"]: row["application_errors"] for row in rows}
    assert [(row["error"], row["match"]) for row in errors["pay/☃"]] == [
        ("PRODUCER_FENCED", "transactional_id"),
        ("INVALID_PRODUCER_EPOCH", "producer_id"),
    ]


def test_an_event_of_sequences_shows_the_errors_of_its_producer_and_the_reverse() -> None:
    view = after(*REORDERING)
    (episode,) = view.memory.sequences.episodes
    assert episode.name is not None
    near = at(10).strftime("%Y-%m-%d %H:%M:%S,000")
    may_be = problem(retried(episode.name.topic, episode.name.partition, at=near))
    sure = problem(broker_side(episode.producer_id or 0, at=near))
    client = client_of(may_be, sure, snapshot=view.snapshot, view=view, at=view.now)
    detail = get(client, f"/api/v1/sequences/{episode.id}")
    assert [(row["id"], row["match"].split("_")[0]) for row in detail["application_errors"]] == [
        (sure.id, "producer"),
        (may_be.id, "may"),
    ]
    (row,) = get(client, f"{PATH}/{may_be.id}")["sequences"]
    assert (row["id"], row["match"], row["class"]) == (episode.id, "may_be_of_it", "reordering")


def test_findings_of_its_group_and_perhaps_of_its_topic_are_shown() -> None:
    labels = (("cluster", "default"), ("group", "billing"), ("topic", "orders"))
    other = (("cluster", "default"), ("group", "audit"), ("topic", "orders"))
    findings = opened(
        open_finding("orders"),
        open_finding("refunds"),
        open_finding(identity=("consumer_lag", labels)),
        open_finding(identity=("consumer_lag", other)),
    )
    client = client_of(*PROBLEMS, open_findings=findings)
    of_group = get(client, f"{PATH}/{PROBLEMS[3].id}")["findings"]
    assert [(row["rule"], row["match"]) for row in of_group] == [("consumer_lag", "group")]
    of_topic = get(client, f"{PATH}/{PROBLEMS[1].id}")["findings"]
    assert {row["match"] for row in of_topic} == {"may_be_of_it"}


def test_errors_are_shown_before_the_first_round_and_are_no_verdict() -> None:
    client = client_of(PROBLEMS[0], snapshot=None, view=None)
    detail = get(client, f"{PATH}/{PROBLEMS[0].id}")
    assert [detail[name] for name in ("sequences", "transactions", "findings")] == [[], [], []]
