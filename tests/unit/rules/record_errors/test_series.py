"""Which clients have series in history, within their bound, and what their rates are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest

from rules.facts.scrapes import ClientReading
from rules.facts.times import SECOND_US
from rules.record_errors.series import (
    KEPT_US,
    MAX_PER_CLUSTER,
    MAX_PER_TOPIC,
    REST,
    ClientPlaces,
    ClientTopic,
    client_rates,
)
from tests.scraped import PAGE, client_reading, counted, endpoint_state, scrapes

SERVER: Final = "http://prometheus:9090"
PAYMENTS: Final = ClientTopic("orders", "payments")
ALL_REST: Final = ClientTopic("orders", REST)
ROUND_US: Final = 15 * SECOND_US
QUIET: Final = client_reading()


def retried(
    client_id: str, count: int = 1, *, rate: float | None = 0.5, **more: object
) -> ClientReading:
    retries = counted(total=count, rate=rate)
    return client_reading(client_id, **{"retries": retries, **more})


def random_ids(number: int, topic: str = "orders") -> list[ClientReading]:
    """Return clients that chose another id in every process, all of which retried."""
    return [
        retried(f"producer-{place:04}", place + 1, address=f"app-{place}:8081", topic=topic)
        for place in range(number)
    ]


@pytest.mark.parametrize(
    ("reading", "has_series"),
    [
        pytest.param(QUIET, False, id="no failed record and no retry so far"),
        pytest.param(retried("payments"), True, id="a retry"),
        pytest.param(client_reading(errors=counted(total=1)), True, id="a failed record"),
        pytest.param(
            client_reading(errors=counted(total=None, rate=0.2)), True, id="a rate above zero"
        ),
        pytest.param(retried("payments", topic=None), False, id="its topics are not reported"),
        pytest.param(retried("payments", is_gone=True), False, id="it is not there any more"),
    ],
)
def test_a_client_has_series_from_its_first_record_that_failed_or_was_sent_again(
    reading: ClientReading, *, has_series: bool
) -> None:
    places = ClientPlaces().after(scrapes(reading), 0)
    assert (PAYMENTS in places.series) is has_series
    assert places.rest_topics == frozenset()


def test_a_place_is_kept_for_a_day_after_the_client_was_last_seen() -> None:
    places = ClientPlaces().after(scrapes(retried("payments")), 0)
    assert places.after(scrapes(QUIET), ROUND_US).seen_us == {PAYMENTS: ROUND_US}
    gone = places.after(scrapes(), KEPT_US)
    assert gone.series == (PAYMENTS,)
    assert client_rates(scrapes(), gone)[PAYMENTS] == pytest.approx(
        (math.nan, math.nan), nan_ok=True
    )
    assert places.after(scrapes(), KEPT_US + 1).series == ()


def test_random_ids_take_a_bounded_number_of_series_and_the_others_are_the_rest() -> None:
    seen = scrapes(*random_ids(MAX_PER_TOPIC + 5))
    places = ClientPlaces().after(seen, 0)
    assert len(places.series) == MAX_PER_TOPIC + 1
    assert ClientTopic("orders", f"producer-{MAX_PER_TOPIC + 4:04}") in places.series
    rates = client_rates(seen, places)
    assert rates[ALL_REST].retries == pytest.approx(5 * 0.5)
    assert sum(rate.retries for rate in rates.values()) == pytest.approx(0.5 * (MAX_PER_TOPIC + 5))

    later = places.after(scrapes(*random_ids(MAX_PER_TOPIC + 5)[:5]), ROUND_US)
    assert later.series == places.series, "who has a place keeps it, and the rest stays"


def test_a_cluster_has_a_bound_of_its_own() -> None:
    topics = MAX_PER_CLUSTER // MAX_PER_TOPIC + 3
    readings = [
        client for number in range(topics) for client in random_ids(MAX_PER_TOPIC, f"t{number}")
    ]
    places = ClientPlaces().after(scrapes(*readings), 0)
    assert len(places.seen_us) == MAX_PER_CLUSTER
    assert len(places.rest_topics) > 0


def test_a_client_that_took_the_name_of_the_rest_is_of_it() -> None:
    seen = scrapes(retried(REST), retried("", address="b:1"))
    places = ClientPlaces().after(seen, 0)
    assert places.series == (ALL_REST,)
    assert client_rates(seen, places)[ALL_REST].retries == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("readings", "errors", "retries"),
    [
        pytest.param([retried("payments")], 0.0, 0.5, id="both counters"),
        pytest.param(
            [retried("payments"), retried("payments", address="app-2:8081")],
            0.0,
            1.0,
            id="processes",
        ),
        pytest.param(
            [retried("payments"), retried("payments", endpoint=SERVER)],
            0.0,
            0.5,
            id="one, seen twice",
        ),
        pytest.param([retried("payments", errors=None)], math.nan, 0.5, id="errors not reported"),
        pytest.param([retried("payments", rate=None)], 0.0, math.nan, id="observed once"),
        pytest.param(
            [replace(retried("payments"), endpoint="silent")], math.nan, math.nan, id="no answer"
        ),
    ],
)
def test_a_rate_is_the_sum_of_what_is_known(
    readings: Sequence[ClientReading], errors: float, retries: float
) -> None:
    states = (
        endpoint_state(PAGE),
        endpoint_state(SERVER),
        endpoint_state("silent", is_fresh=False),
    )
    seen = scrapes(*readings, endpoints=states)
    rates = client_rates(seen, ClientPlaces().after(seen, 0))
    assert rates[PAYMENTS] == pytest.approx((errors, retries), nan_ok=True)
