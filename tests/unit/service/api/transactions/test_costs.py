"""What transactions cost over HTTP: the most first, page by page, with all coordinators on each."""

from __future__ import annotations

from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from rules.facts.transaction_log import TransactionLog
from tests.unit.rules.transactions.cost_rounds import PLACES, observed, play, transactions_of
from tests.unit.service.api.given import client_of

PATH: Final = "/api/v1/transactions/cost"
START: Final = observed()
BUSY: Final = observed(
    (1200, 330, 0, 0),
    transactions_of("payments", 600, took=0.25),
    transactions_of("billing-1", 30, on=PLACES[1:2], coordinator=1),
    transactions_of("billing-2", 3, on=PLACES[1:2], coordinator=1),
)


def client_for(*rounds: dict[str, Any]) -> TestClient:
    view = play(*rounds)
    return client_of(snapshot=view.snapshot, view=view, at=view.now)


def test_a_transactional_id_is_a_row_with_its_numbers() -> None:
    answer = client_for(START, BUSY).get(PATH).json()
    assert answer["items"][0] == {
        "transactional_id": "payments",
        "coordinator": 2,
        "transactions": 600,
        "transactions_per_second": 10.0,
        "records_per_transaction": 1.0,
        "records_per_transaction_at_most": 1.0,
        "bytes_per_transaction": None,
        "is_shared": False,
        "markers_per_transaction": 1.0,
        "markers_per_second": 10.0,
        "state_records_per_second": 30.0,
        "marker_share": 0.5,
        "marker_mean_ms": 250.0,
        "marker_p99_at_most_ms": 250,
    }
    shared = answer["items"][1]
    assert (shared["is_shared"], shared["records_per_transaction"]) == (True, 9.0)
    assert shared["records_per_transaction_at_most"] == 9.9
    assert (answer["window_ms"], answer["is_whole"], answer["log_is_read"]) == (60_000, True, True)
    assert [
        (row["coordinator"], row["transactional_ids"], row["transactions"])
        for row in answer["coordinators"]
    ] == [(1, 2, 33), (2, 1, 600), (3, 0, 0)]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["payments", "billing-1", "billing-2"]),
        ("?transactional_id=bill*", ["billing-1", "billing-2"]),
        ("?coordinator=2", ["payments"]),
        ("?coordinator=3", []),
        ("?limit=2", ["payments", "billing-1"]),
    ],
)
def test_the_list_is_filtered(query: str, shown: list[str]) -> None:
    items = client_for(START, BUSY).get(f"{PATH}{query}").json()["items"]
    assert [item["transactional_id"] for item in items] == shown


def test_the_next_page_goes_on_behind_the_last_row() -> None:
    client = client_for(START, BUSY)
    cursor = client.get(f"{PATH}?limit=2").json()["next"]
    page = client.get(PATH, params={"limit": 2, "cursor": cursor}).json()
    assert [item["transactional_id"] for item in page["items"]] == ["billing-2"]
    assert (page["next"], len(page["coordinators"])) == (None, 3)


def test_without_the_log_the_list_says_so() -> None:
    unread = START | {"transaction_log": TransactionLog.unread()}
    answer = client_for(START, unread).get(PATH).json()
    assert (answer["items"], answer["log_is_read"], answer["is_whole"]) == ([], False, False)
