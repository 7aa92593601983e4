"""Open transactions over HTTP: the worst first, with whom they hold up and what was not seen."""

from __future__ import annotations

from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from rules.facts.gap import GapScope
from rules.facts.identity import TopicPartition
from rules.facts.transactions import IdVisibility, TransactionState
from rules.view import View
from tests.factories import (
    at,
    commits,
    gap,
    group,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transaction,
    transactions,
)
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.api.given import client_of

PLACED: Final = partitions({"orders": 2, "refunds": 1, "__transaction_state": 1})
HANGS: Final = transaction(state=TransactionState.EMPTY, partitions=frozenset[TopicPartition]())
RUNS: Final = transaction(
    "pay/☃", producer_id=9, partitions=frozenset({TopicPartition("refunds", 0)})
)
LATE: Final = transaction("late", producer_id=11, started_at=at(-90))


def seen(**overrides: Any) -> View:
    """Return the second observation of a cluster in which one hangs, one is late and one runs."""
    base: dict[str, Any] = {
        "partitions": PLACED,
        "offsets": offsets(4, last_stable_offset=[90, 100, 95, 100]),
        "transactions": transactions(HANGS, RUNS, LATE, resolved=frozenset({7})),
        "producers": producers(
            open_producer(), open_producer(row=2, producer_id=9, start_offset=95), rows=4
        ),
        "groups": (group("billing"), group("audit")),
        "commits": commits((0, 0, 90), (1, 2, 60)),
    }
    return view_of([snapshot(**base | {"taken_at": at(n * 15)} | overrides) for n in range(2)])


def client_for(view: View) -> TestClient:
    return client_of(snapshot=view.snapshot, view=view, at=view.now)


@pytest.fixture
def client() -> TestClient:
    return client_for(seen())


def test_the_worst_comes_first(client: TestClient) -> None:
    told = client.get("/api/v1/transactions").json()
    assert [(row["class"], row["transactional_id"]) for row in told["items"]] == [
        ("hanging", "payments"), ("overdue", "late"), ("open", "pay/☃"),
    ]  # fmt: skip
    assert (told["is_current"], told["as_of"], told["next"]) == (True, "2025-06-02T12:00:15Z", None)


def test_one_that_hangs_is_told_whole(client: TestClient) -> None:
    row = client.get("/api/v1/transactions").json()["items"][0]
    assert row.pop("next_step").startswith("Nobody will ever end it")
    assert row == {
        "class": "hanging",
        "unknown_reason": None,
        "is_listed": False,
        "transactional_id": "payments",
        "producer_id": 7,
        "producer_epoch": 3,
        "coordinator": 2,
        "state": "Empty",
        "timeout_ms": 60_000,
        "started_at": None,
        "first_seen_at": "2025-06-02T12:00:00Z",
        "running_ms": None,
        "partition_count": 1,
        "partitions": [
            {
                "topic": "orders",
                "partition": 0,
                "leader": 1,
                "start_offset": 90,
                "last_stable_offset": 90,
                "high_watermark": 100,
                "open_span": 10,
                "holds_last_stable_offset": True,
                "last_record_at": "2025-06-02T11:59:55Z",
                "coordinator_epoch": None,
                "blocked_groups": [
                    {
                        "group": "billing",
                        "is_waiting": True,
                        "lag_before_transaction": 0,
                        "blocked_offsets": 10,
                    }
                ],
                "blocked_group_count": 1,
            }
        ],
        "application_errors": [],
        "repair": "kafka-transactions.sh --bootstrap-server "
        "127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093 "
        "abort --topic orders --partition 0 --start-offset 90",
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("class=hanging", ["payments"]),
        ("class=unknown", []),
        ("transactional_id=pay*", ["payments", "pay/☃"]),
        ("topic=refunds", ["pay/☃"]),
        ("topic=orders", ["payments", "late"]),
        ("group=billing", ["payments"]),
        ("group=aud*", ["pay/☃"]),
        ("group=nobody", []),
        ("topic=orders&class=overdue", ["late"]),
    ],
)
def test_filters_show_what_is_known_to_match(
    client: TestClient, query: str, expected: list[str]
) -> None:
    told = client.get(f"/api/v1/transactions?{query}").json()
    assert [row["transactional_id"] for row in told["items"]] == expected


def test_pages_lead_on_without_a_gap_or_a_repetition(client: TestClient) -> None:
    url, found = "/api/v1/transactions?limit=1", []
    while url:
        answer = client.get(url)
        found += [row["transactional_id"] for row in answer.json()["items"]]
        url = answer.links.get("next", {}).get("url", "")
    assert found == ["payments", "late", "pay/☃"]


def test_transactions_of_one_producer_on_two_partitions_are_two_entries() -> None:
    two = producers(open_producer(), open_producer(row=1), rows=4)
    client = client_for(seen(producers=two, transactions=transactions(resolved=frozenset({7}))))
    first = client.get("/api/v1/transactions?limit=1")
    rest = client.get(first.links["next"]["url"]).json()["items"]
    places = [row["partitions"][0]["partition"] for row in [*first.json()["items"], *rest]]
    assert places == [0, 1]
    assert rest[0]["transactional_id"] is None


def test_a_whole_list_says_so(client: TestClient) -> None:
    told = client.get("/api/v1/transactions").json()
    assert (told["complete"], told["all_coordinators_answered"], told["transactional_id_visibility"], told["gaps"]) == (
        True, True, "no_authorizer", [],
    )  # fmt: skip


def test_what_could_not_be_seen_is_said() -> None:
    silent = gap(what="transactions coordinated by broker 2", scope=GapScope.TRANSACTIONS)
    view = seen(
        transactions=transactions(is_complete=False, visibility=IdVisibility.UNPROVEN),
        gaps=(silent,),
    )
    told = client_for(view).get("/api/v1/transactions").json()
    assert (told["complete"], told["all_coordinators_answered"], told["transactional_id_visibility"]) == (
        False, False, "unproven",
    )  # fmt: skip
    assert told["gap_count"] == 1
    assert told["gaps"][0]["what"] == "transactions coordinated by broker 2"
    assert [row["unknown_reason"] for row in told["items"]] == ["coordinator_not_seen"] * 2


def test_an_empty_list_is_complete_or_not_by_itself() -> None:
    quiet = view_of([snapshot(partitions=PLACED)])
    told = client_for(quiet).get("/api/v1/transactions").json()
    assert (told["items"], told["complete"]) == ([], True)


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("class=broken", 422, "class"),
        ("state=Ongoing", 422, "state"),
        ("topic=", 422, "topic"),
        ("limit=0", 422, "limit"),
        ("class=open&class=open", 422, "class"),
        ("cursor=nonsense", 400, None),
    ],
)
def test_what_cannot_be_asked_is_a_problem(
    client: TestClient, query: str, status: int, field: str | None
) -> None:
    answer = client.get(f"/api/v1/transactions?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (
        status, "application/problem+json",
    )  # fmt: skip
    assert [error["field"] for error in answer.json().get("errors", [])] == (
        [] if field is None else [field]
    )


def test_a_cursor_of_another_list_is_rejected(client: TestClient) -> None:
    other = client.get("/api/v1/partitions?limit=1").json()["next"]
    assert client.get(f"/api/v1/transactions?cursor={other}").status_code == 400


def test_before_the_first_round_there_is_no_list() -> None:
    answer = client_of(snapshot=None, view=None).get("/api/v1/transactions")
    assert answer.status_code == 503


def test_an_age_is_never_negative_where_the_coordinators_clock_is_ahead() -> None:
    ahead = client_for(seen(transactions=transactions(transaction(started_at=at(3600)))))
    [row] = ahead.get("/api/v1/transactions?transactional_id=payments").json()["items"]
    assert (row["running_ms"], row["started_at"]) == (None, "2025-06-02T13:00:00Z")
