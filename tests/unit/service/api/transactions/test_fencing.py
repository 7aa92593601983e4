"""Fencing episodes over HTTP: who fenced the producers of a transactional id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.unit.rules.fencing.cases import CASES
from tests.unit.rules.fencing.rounds import begun, observed, play, state
from tests.unit.service.api.given import client_of

PATH = "/api/v1/transactions/fencing"


def client_for(*rounds: dict[str, Any]) -> TestClient:
    view = play(rounds)
    return client_of(snapshot=view.snapshot, view=view, at=view.now)


def test_a_zombie_is_listed_with_both_instances_and_what_is_not_lost() -> None:
    answer = client_for(*CASES["zombie-v1-request-log"].rounds).get(PATH).json()
    assert (answer["log_is_read"], answer["next"]) == (True, None)
    [row] = answer["items"]
    assert (row["class"], row["reason"]) == ("zombie", "older_epoch_rejected")
    assert (row["transactional_id"], row["producer_id"], row["newest_epoch"]) == ("payments", 7, 2)
    assert (row["older_instance"], row["newer_instance"]) == (
        "a at 10.0.0.1:5001",
        "b at 10.0.0.2:5002",
    )
    assert row["takeovers"] == [
        {
            "producer_epoch": 2,
            "at": "2025-06-02T12:00:10.100000Z",
            "cut_transaction": True,
            "client": "b at 10.0.0.2:5002",
        }
    ]
    assert [(cut["cut"], cut["producer_epoch"]) for cut in row["cuts"]] == [("second_instance", 0)]
    assert (row["rejected_requests"], row["rejected"][0]["request"]) == (1, "EndTxn")
    assert row["read_committed"] is not None
    assert row["needed_evidence"] is None


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["invoices", "payments"]),
        ("?transactional_id=pay*", ["payments"]),
        ("?class=zombie", []),
        ("?state=ended", []),
        ("?producer_id=8", ["invoices"]),
    ],
)
def test_the_list_is_filtered(query: str, shown: list[str]) -> None:
    other = replace(begun(11, 2), transactional_id="invoices", producer_id=8)
    client = client_for(observed(transaction_log=state(begun(10, 2), other)))
    items = client.get(f"{PATH}{query}").json()["items"]
    assert sorted(item["transactional_id"] for item in items) == shown
