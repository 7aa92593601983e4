"""Values are written as Grafana writes them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from tests.pictures.units import in_unit

NOW = datetime(2026, 11, 24, 19, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "short", "0"),
        (7.0, "short", "7"),
        (999.0, "short", "999"),
        (1000.0, "short", "1 K"),
        (12_345.0, "short", "12.3 K"),
        (2_500_000.0, "short", "2.5 Mil"),
        (-1500.0, "short", "-1.5 K"),
        (0.25, "short", "0.25"),
        (1_284_211.0, "none", "1284211"),
        (0.0, "s", "0 s"),
        (0.0042, "s", "4.2 ms"),
        (59.0, "s", "59 s"),
        (90.0, "s", "1.5 mins"),
        (7200.0, "s", "2 hours"),
        (172_800.0, "s", "2 days"),
        (98.36, "cps", "98.4 c/s"),
        (1500.0, "reqps", "1.5K req/s"),
        (0.5, "ops", "0.5 ops/s"),
        (0.2, "percentunit", "20%"),
        (1.0, "percentunit", "100%"),
        (1024.0, "bytes", "1 KiB"),
        (0.0, "bytes", "0 B"),
        (157_286_400.0, "bytes", "150 MiB"),
        (1.0, "bool_yes_no", "Yes"),
        (0.0, "bool_yes_no", "No"),
        (math.nan, "s", "NaN"),
        (math.inf, "s", "+Inf"),
    ],
)
def test_a_value_has_its_unit(value: float, unit: str, text: str) -> None:
    assert in_unit(value, unit, NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "a few seconds ago"),
        (-60, "a minute ago"),
        (-180, "3 minutes ago"),
        (-3600, "an hour ago"),
        (-5 * 3600, "5 hours ago"),
        (-86_400, "a day ago"),
        (-3 * 86_400, "3 days ago"),
        (600, "in 10 minutes"),
    ],
)
def test_a_time_is_a_distance_from_now(seconds: float, text: str) -> None:
    assert in_unit((NOW + seconds) * 1000, "dateTimeFromNow", NOW) == text


def test_a_time_of_today_has_no_date() -> None:
    assert in_unit(NOW * 1000, "dateTimeAsIso", NOW) == "19:00:00"
    assert in_unit((NOW - 86_400) * 1000, "dateTimeAsIso", NOW) == "2026-11-23 19:00:00"


def test_a_unit_that_is_not_written_here_is_an_error() -> None:
    with pytest.raises(KeyError):
        in_unit(1, "furlongs", NOW)
