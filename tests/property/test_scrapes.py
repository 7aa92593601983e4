"""Laws of reading metrics: nothing invented, nothing raised, and the order of lines means nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from collectors.scrapes.answer import Samples
from collectors.scrapes.counting import ScrapeTime
from collectors.scrapes.endpoints import BadAddressError, Endpoint, page_at, target_of
from collectors.scrapes.page import read_page
from collectors.scrapes.query import read_answer
from collectors.scrapes.selection import Quantity, series_of
from collectors.scrapes.tracking import Tracker
from rules.facts.times import SECOND_US

NAMES: Final = st.sampled_from(
    [
        "kafka_producer_record_error_total",
        "kafka_producer_topic_record_retry_rate",
        "kafka_network_RequestMetrics_Count",
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "up",
    ]
)
LABELS: Final = st.dictionaries(
    st.sampled_from(["client_id", "clientId", "topic", "request", "error", "name", "x"]),
    st.text(max_size=8),
    max_size=4,
)
LINES: Final = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(str.encode),
    st.builds(
        lambda name, rest: f"{name}{rest}".encode(), NAMES, st.text('{}"=,\\ 0a#\n', max_size=30)
    ),
    st.builds(lambda rest: b'{"kafka.producer.record.error' + rest, st.binary(max_size=30)),
)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def line(name: str, labels: dict[str, str], value: float) -> bytes:
    pairs = ",".join(f'{key}="{escaped(told)}"' for key, told in labels.items())
    return f"{name}{{{pairs}}} {value}\n".encode(errors="replace")


@given(st.lists(LINES, max_size=8), st.booleans())
def test_no_page_raises_and_what_is_left_out_is_told(
    lines: list[bytes],
    is_openmetrics: bool,  # noqa: FBT001 - drawn by place
) -> None:
    seen = read_page(b"\n".join(lines), is_openmetrics=is_openmetrics, max_series=3)
    assert len(seen.values) <= 3
    assert all(0 <= value <= 2**53 for value in seen.values.values())
    assert seen.is_whole or seen.failures


@given(NAMES, LABELS, st.integers(0, 2**53))
def test_what_is_written_by_the_rules_is_read_as_it_was(
    name: str, labels: dict[str, str], value: int
) -> None:
    text = {key: told.encode(errors="replace").decode() for key, told in labels.items()}
    expected = series_of(name, text)
    seen = read_page(line(name, text, value), is_openmetrics=False, max_series=10)
    if expected is None or expected.error == "NONE":
        assert not seen.values
    else:
        assert dict(seen.values) == {expected: float(value)}


@given(st.lists(st.tuples(LABELS, st.integers(0, 9)), max_size=6), st.randoms())
def test_the_order_of_lines_means_nothing(
    found: list[tuple[dict[str, str], int]], random: Random
) -> None:
    lines = [line("kafka_producer_record_error_total", *one) for one in found]
    shuffled = list(lines)
    random.shuffle(shuffled)
    one, other = (
        read_page(b"".join(each), is_openmetrics=False, max_series=100)
        for each in (lines, shuffled)
    )
    assert dict(one.values) == dict(other.values)
    assert set(one.failures) == set(other.failures)


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "data", "resultType", "result", "metric", "value", "error"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.one_of(st.binary(max_size=80), JSON.map(lambda told: json.dumps(told).encode())))
def test_no_answer_of_a_server_raises(body: bytes) -> None:
    seen = read_answer(body, max_series=3)
    assert not seen.values
    assert seen.failures


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=12), st.text(max_size=12)))
def test_an_address_is_read_or_rejected(text: str, labels: dict[str, str]) -> None:
    reads: list[Callable[[], Endpoint]] = [
        lambda: page_at(text),
        lambda: page_at(f"http://{text}"),
        lambda: target_of(text, labels),
    ]
    for read in reads:
        try:
            found = read()
        except BadAddressError:
            continue
        assert "@" not in found.name.partition("://")[2].partition("/")[0]
        assert found.url.startswith(("http://", "https://"))


OBSERVATIONS: Final = st.lists(st.one_of(st.none(), st.integers(0, 1000)), max_size=30)


@given(OBSERVATIONS)
def test_rises_of_a_counter_are_never_more_than_it_can_have_counted(
    observations: list[int | None],
) -> None:
    """None is an answer without it. What it counted is at most what every run of it showed."""
    tracker = Tracker(page_at("http://app-1"), fresh_us=10**9, max_series=10)
    series = series_of("kafka_producer_record_error_total", {"client_id": "a"})
    assert series is not None
    timestamp = ScrapeTime(0, 0)
    for number, value in enumerate(observations):
        timestamp = ScrapeTime(number * SECOND_US, number * SECOND_US + 1)
        tracker.note(Samples(values={} if value is None else {series: value}), timestamp)
    readings = tracker.readings(0, timestamp.ended_us).clients
    told = sum(rise.count or 0 for one in readings if one.errors for rise in one.errors.rises)
    known = [value for value in observations if value is not None]
    pairs = zip([0, *known], known, strict=False)
    most = sum(after - before if after >= before else after for before, after in pairs)
    first_is_base = bool(observations) and observations[0] is not None
    assert told == most - (known[0] if first_is_base else 0)


@given(OBSERVATIONS)
def test_quantities_do_not_mix(observations: list[int | None]) -> None:
    tracker = Tracker(page_at("http://app-1"), fresh_us=10**9, max_series=10)
    timestamp = ScrapeTime(0, 0)
    names = {Quantity.RECORD_ERRORS: "error", Quantity.RECORD_RETRIES: "retry"}
    series = {
        quantity: series_of(f"kafka_producer_record_{word}_total", {"client_id": "a"})
        for quantity, word in names.items()
    }
    errors, retries = series.values()
    assert errors is not None
    assert retries is not None
    for number, value in enumerate(observations):
        timestamp = ScrapeTime(number * SECOND_US, number * SECOND_US + 1)
        tracker.note(Samples(values={errors: 0.0, retries: float(value or 0)}), timestamp)
    for one in tracker.readings(0, timestamp.ended_us).clients:
        assert one.errors is not None
        assert one.errors.rises == ()
