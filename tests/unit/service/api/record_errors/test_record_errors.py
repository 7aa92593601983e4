"""Failed records and retries over HTTP: by client and topic, and what an empty list is worth."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rules.facts.gap import GapCause
from rules.facts.scrapes import ClientReading, ScrapeFailure, Scrapes
from tests.factories import NOON, snapshot
from tests.scraped import PAGE, client_reading, counted, endpoint_state, rise, scrapes
from tests.unit.service.api.given import client_of

RETRIED: Final = client_reading(retries=counted(rise(-75, -60, 2), rise(-15, 0, 3), total=9))
QUIET: Final = client_reading("audit")
WHOLE: Final = client_reading("audit", topic=None, errors=counted(rise(-15, 0, 1)), retries=None)
OTHER: Final = client_reading("refunds-1", topic="refunds")
SILENT: Final = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")


def answer(*clients: ClientReading, query: str = "", **overrides: Any) -> Any:
    seen = snapshot(scrapes=scrapes(*clients, **overrides))
    return client_of(snapshot=seen, at=NOON).get(f"/api/v1/record-errors{query}").json()


def test_a_client_has_its_numbers_and_when_they_rose() -> None:
    page = answer(RETRIED)
    (row,) = page.pop("items")
    assert page == {
        "as_of": "2025-06-02T12:00:00Z",
        "is_current": True,
        "next": None,
        "is_read": True,
        "complete": True,
        "endpoint_count": 1,
        "incomplete_endpoint_count": 0,
        "incomplete_endpoints": [],
        "endpoints_without_metrics": [],
        "list_errors": [],
    }
    last = {"since": "2025-06-02T11:59:45Z", "until": "2025-06-02T12:00:00Z", "count": 3}
    first = {"since": "2025-06-02T11:58:45Z", "until": "2025-06-02T11:59:00Z", "count": 2}
    observed = {"since": "2025-06-02T11:59:45Z", "until": "2025-06-02T12:00:00Z"}
    assert row == {
        "cluster": "default",
        "topic": "orders",
        "client_id": "payments",
        "address": "app-1:8081",
        "endpoint": PAGE,
        "other_endpoints": [],
        "state": "current",
        "seen_since": "2025-06-02T11:50:00Z",
        "seen_at": "2025-06-02T12:00:00Z",
        "last_rise_at": "2025-06-02T12:00:00Z",
        "errors": {"total": 0, "increase": 0, "rate": 0.0, "last_rise": None, "rises": []}
        | observed,
        "retries": {
            "total": 9,
            "increase": 3,
            "rate": 0.2,
            "last_rise": last,
            "rises": [last, first],
        }
        | observed,
    }


def test_what_a_client_does_not_report_is_null() -> None:
    rate_alone = counted(rise(-60, 0, None), total=None, increase=None, since=None, rate=0.5)
    (row,) = answer(client_reading(topic=None, errors=rate_alone, retries=None))["items"]
    assert (row["topic"], row["retries"]) == (None, None)
    errors = row["errors"]
    assert (errors["total"], errors["increase"], errors["since"], errors["rate"]) == (None,) * 3 + (
        0.5,
    )
    assert errors["last_rise"]["count"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "",
            [
                (None, "audit"),
                ("orders", "audit"),
                ("orders", "payments"),
                ("refunds", "refunds-1"),
            ],
        ),
        ("?topic=orders", [("orders", "audit"), ("orders", "payments")]),
        ("?client_id=*s-1", [("refunds", "refunds-1")]),
        ("?failing=true", [(None, "audit"), ("orders", "payments")]),
        ("?topic=orders&failing=true", [("orders", "payments")]),
        ("?cluster=other", []),
        ("?cluster=def*&topic=refunds", [("refunds", "refunds-1")]),
    ],
)
def test_filters_show_what_is_known_to_match(
    query: str, expected: list[tuple[str | None, str]]
) -> None:
    page = answer(RETRIED, QUIET, WHOLE, OTHER, query=query)
    assert [(row["topic"], row["client_id"]) for row in page["items"]] == expected


def test_pages_follow_each_other_by_key() -> None:
    first = answer(RETRIED, QUIET, WHOLE, OTHER, query="?limit=2")
    second = answer(RETRIED, QUIET, WHOLE, OTHER, query=f"?limit=2&cursor={first['next']}")
    shown = [row["client_id"] for page in (first, second) for row in page["items"]]
    assert shown == ["audit", "audit", "payments", "refunds-1"]
    assert second["next"] is None


def test_an_empty_list_names_the_endpoints_that_do_not_answer() -> None:
    page = answer(endpoints=(endpoint_state(answered_at=None, is_fresh=False, failures=(SILENT,)),))
    assert (page["items"], page["complete"], page["incomplete_endpoint_count"]) == ([], False, 1)
    assert page["incomplete_endpoints"] == [
        {
            "endpoint": PAGE,
            "kind": "page",
            "answered_at": None,
            "errors": [{"cause": "timeout", "why": "no whole answer within 5 s"}],
        }
    ]


def test_without_configured_endpoints_nothing_is_known() -> None:
    seen = snapshot(scrapes=Scrapes.unread())
    page = client_of(snapshot=seen, at=NOON).get("/api/v1/record-errors").json()
    assert (page["is_read"], page["complete"], page["items"]) == (False, False, [])
