"""Which half hour of the wall clock a sample belongs to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rules.baseline.civil import civil_day
from tests.unit.rules.baseline.days import day_of

STEP_MS = 30_000
QUARTERS_PER_DAY = 96


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        (date(2026, 3, 28), "Europe/Berlin", 24),
        (date(2026, 3, 29), "Europe/Berlin", 23),
        (date(2026, 10, 25), "Europe/Berlin", 25),
        (date(2026, 4, 5), "Australia/Lord_Howe", 24.5),
        (date(2026, 3, 8), "America/Havana", 23),  # midnight itself is skipped
        (date(2026, 6, 1), "Asia/Kathmandu", 24),  # 5 h 45 min off
    ],
)
def test_slots_are_those_of_the_wall_clock(day: date, zone: str, hours: float) -> None:
    known = civil_day(day, zone)
    samples = known.samples(STEP_MS)
    assert samples == hours * 120
    timestamps = [
        datetime.fromtimestamp((known.start_ms + STEP_MS * place) / 1000, UTC).astimezone(
            ZoneInfo(zone)
        )
        for place in range(samples)
    ]
    assert {timestamp.date() for timestamp in timestamps} == {day}
    expected = [2 * timestamp.hour + timestamp.minute // 30 for timestamp in timestamps]
    assert known.slots(STEP_MS).tolist() == expected
    following = civil_day(day + timedelta(days=1), zone)
    assert following.start_ms == known.end_ms


def test_a_transition_is_near_from_a_day_before_to_a_week_after() -> None:
    near = {
        number: int(civil_day(date(2026, 10, number), "Europe/Berlin").is_near_transition.sum())
        for number in (23, 24, 25, 26, 31)
    }
    assert near == {23: 0, 24: 84, 25: 100, 26: 96, 31: 96}  # at 01:00 UTC on the 25th
    november = civil_day(date(2026, 11, 1), "Europe/Berlin")
    assert int(november.is_near_transition.sum()) == 8
    assert not day_of(0).is_near_transition.any()


def test_a_step_must_divide_a_quarter_of_an_hour() -> None:
    with pytest.raises(ValueError, match="7000 ms does not divide"):
        day_of(0).samples(7_000)


def test_a_zone_that_does_not_exist_is_rejected() -> None:
    with pytest.raises(ValueError, match="no such time zone: Europe/Atlantis"):
        civil_day(date(2026, 1, 1), "Europe/Atlantis")


def test_days_are_counted_over_transitions() -> None:
    days = [civil_day(date(2026, 3, number), "Europe/Berlin") for number in (28, 29, 30)]
    assert np.diff([day.number for day in days]).tolist() == [1, 1]
    assert [day.weekday for day in days] == [5, 6, 0]
    in_order = [np.array_equal(day.quarters, np.arange(QUARTERS_PER_DAY)) for day in days]
    assert in_order == [True, False, True]
