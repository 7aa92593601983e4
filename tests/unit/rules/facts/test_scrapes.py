"""Who reported of a topic within a time, whose records failed, and what could not be seen."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.facts.gap import GapCause, GapScope
from rules.facts.scrapes import (
    ClientReading,
    EndpointState,
    ProducerName,
    ScrapeFailure,
    Scrapes,
    reporting_producers,
)
from tests.factories import NOON, at
from tests.scraped import client_reading, counted, endpoint_state, rise, scrapes

PAYMENTS = ProducerName("app-1:8081", "payments")
BILLING = ProducerName("app-1:8081", "billing")
FAILED = counted(rise(-30, -15))


def test_one_producer_of_the_topic_whose_records_failed_is_the_one() -> None:
    seen = scrapes(client_reading(errors=FAILED), client_reading("billing"))
    producers = reporting_producers(seen, "orders", at(-60), NOON)
    assert producers.reporting == {PAYMENTS, BILLING}
    assert producers.raised == {PAYMENTS}
    assert producers.only_raised == PAYMENTS
    assert producers.is_whole


WINDOWS = {
    "it lies in the window": ((-60, 0), True),
    "the window ends within it": ((-60, -20), True),
    "the window begins within it": ((-20, 0), True),
    "it touches the end of the window": ((-60, -30), True),
    "it is later": ((-60, -31), False),
    "it is earlier": ((-14, 0), False),
}


@pytest.mark.parametrize(("window", "counts"), WINDOWS.values(), ids=WINDOWS)
def test_a_rise_counts_where_it_may_have_been_in_the_window(
    window: tuple[float, float], *, counts: bool
) -> None:
    since, until = window
    producers = reporting_producers(
        scrapes(client_reading(errors=FAILED)), "orders", at(since), at(until)
    )
    assert (producers.only_raised is not None) is counts


NOT_ONE: dict[str, tuple[ClientReading, ...]] = {
    "nobody's records failed": (client_reading(), client_reading("billing")),
    "those of two did": (client_reading(errors=FAILED), client_reading("billing", errors=FAILED)),
    "those of another topic did": (client_reading(topic="other", errors=FAILED),),
    "only retries went up": (client_reading(retries=FAILED),),
    "errors are not exposed": (client_reading(errors=None),),
    "another one's did, for a topic that it does not name": (
        client_reading(errors=FAILED),
        client_reading("billing", topic=None, errors=FAILED),
    ),
    "the same client id runs in two processes": (
        client_reading(errors=FAILED),
        client_reading(errors=FAILED, address="app-2:8081"),
    ),
}


@pytest.mark.parametrize("clients", NOT_ONE.values(), ids=NOT_ONE)
def test_nobody_is_named_unless_it_is_exactly_one(clients: tuple[ClientReading, ...]) -> None:
    assert reporting_producers(scrapes(*clients), "orders", at(-60), NOON).only_raised is None


def test_a_producer_with_metrics_per_topic_is_not_doubted_for_its_sum() -> None:
    of_the_topic = client_reading(errors=FAILED)
    seen = scrapes(of_the_topic, client_reading(topic=None, errors=FAILED))
    assert reporting_producers(seen, "orders", at(-60), NOON).only_raised == PAYMENTS
    other = client_reading("billing", topic="other", errors=FAILED)
    seen = scrapes(of_the_topic, other, client_reading("billing", topic=None, errors=FAILED))
    assert reporting_producers(seen, "orders", at(-60), NOON).only_raised == PAYMENTS


def test_two_endpoints_of_one_process_report_one_producer() -> None:
    seen = scrapes(
        client_reading(errors=FAILED), client_reading(errors=FAILED, endpoint="http://prometheus")
    )
    assert reporting_producers(seen, "orders", at(-60), NOON).only_raised == PAYMENTS


def test_a_rise_of_a_rate_counts_though_its_amount_is_not_known() -> None:
    seen = scrapes(client_reading(errors=counted(rise(-60, 0, None), total=None)))
    assert reporting_producers(seen, "orders", at(-60), NOON).only_raised == PAYMENTS


def test_who_was_gone_before_or_came_after_did_not_report() -> None:
    seen = scrapes(
        client_reading("early", seen_at=at(-100)), client_reading("late", seen_since=at(-20))
    )
    assert reporting_producers(seen, "orders", at(-60), at(-30)).reporting == frozenset()


PARTLY: dict[str, EndpointState] = {
    "it has never answered": endpoint_state(answered_since=None, answered_at=None),
    "it answered later than the window began": endpoint_state(answered_since=at(-59)),
    "it has not answered since the window ended": endpoint_state(answered_at=at(-1)),
    "rises of the window's beginning are forgotten": endpoint_state(
        answered_since=at(-9000), answered_at=at(15 * 60 - 59)
    ),
    "it was cut short": endpoint_state(
        failures=(ScrapeFailure(cause=GapCause.LIMIT, why="more than are kept"),)
    ),
    "its values may be older than the window's end": endpoint_state(lag=timedelta(seconds=1)),
}


@pytest.mark.parametrize("endpoint", PARTLY.values(), ids=PARTLY)
def test_a_window_is_not_whole_where_an_endpoint_was_not_heard(endpoint: EndpointState) -> None:
    seen = scrapes(endpoints=(endpoint_state(), endpoint))
    assert not reporting_producers(seen, "orders", at(-60), NOON).is_whole


def test_without_endpoints_nothing_is_known() -> None:
    nothing = Scrapes.unread()
    assert not reporting_producers(nothing, "orders", at(-60), NOON).is_whole
    assert list(nothing.gaps()) == []
    assert nothing.is_complete


def test_a_list_that_was_never_read_hides_endpoints() -> None:
    assert not scrapes(lists_known=False).is_complete
    assert scrapes().is_complete


def test_only_fresh_answers_may_be_used() -> None:
    old = endpoint_state("http://old", is_fresh=False)
    assert scrapes(endpoints=(endpoint_state(), old)).fresh == {endpoint_state().name}


def test_what_could_not_be_read_is_reported_with_endpoint_and_reason() -> None:
    silent = ScrapeFailure(cause=GapCause.TIMEOUT, why="no answer within 5.0 s")
    broken = ScrapeFailure(cause=GapCause.UNREADABLE, why="targets.json is no JSON")
    seen = scrapes(endpoints=(endpoint_state(failures=(silent,)),), failures=(broken,))
    gaps = [(gap.what, gap.why, gap.cause, gap.scope) for gap in seen.gaps()]
    assert gaps == [
        ("lists of metrics endpoints", broken.why, GapCause.UNREADABLE, GapScope.SCRAPES),
        (f"metrics of {endpoint_state().name}", silent.why, GapCause.TIMEOUT, GapScope.SCRAPES),
    ]


def test_an_old_answer_is_a_gap_though_nothing_went_wrong() -> None:
    old = endpoint_state(is_fresh=False)
    (gap,) = scrapes(endpoints=(endpoint_state(), old)).gaps()
    assert (gap.cause, gap.what) == (GapCause.TIMEOUT, f"metrics of {old.name}")
