"""Between slots of the wall clock and samples, against loops."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from rules.baseline.blocks import Float32s
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.clockface import (
    FACE,
    PAD,
    draw_samples,
    edges,
    gather_slots,
    hourly_maxima,
    of_week,
    wrap_day,
)
from tests.unit.rules.baseline.days import STEP_MS, day_of

DAYS = [
    day_of(0),
    civil_day(date(2026, 3, 29), "Europe/Berlin"),
    civil_day(date(2026, 10, 25), "Europe/Berlin"),
]
PER_QUARTER = 900_000 // STEP_MS


def some_face(seed: int = 1) -> Float32s:
    return np.random.default_rng(seed).integers(0, 100, (2, FACE)).astype(np.float32)


def plain_line(face: Float32s, row: int, half_hours: float) -> float:
    """Return the value at a place on the wall clock, in slots since midnight."""
    from_middle = half_hours - 0.5
    left = math.floor(from_middle)
    low, high = (float(face[row, PAD + slot]) for slot in (left, left + 1))
    return low + (high - low) * (from_middle - left)


def places(day: CivilDay) -> list[float]:
    """Return where the middle of every sample is on the wall clock, in slots since midnight."""
    return [
        quarter / 2 + (part + 0.5) / (2 * PER_QUARTER)
        for quarter in day.quarters.tolist()
        for part in range(PER_QUARTER)
    ]


@pytest.mark.parametrize("day", DAYS, ids=["24 h", "23 h", "25 h"])
def test_lines_run_between_the_middles_of_slots(day: CivilDay) -> None:
    face = some_face()
    found = draw_samples(face, day.quarters, PER_QUARTER)
    expected = [[plain_line(face, row, place) for place in places(day)] for row in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_around_a_transition_the_band_is_the_widest_of_an_hour_aside() -> None:
    upper, lower = some_face(1), some_face(2)
    for day in DAYS:
        above, below = edges(upper, lower, day, PER_QUARTER)
        near = np.repeat(day.is_near_transition, PER_QUARTER)
        for sample, place in enumerate(places(day)):
            around = (place - 2, place, place + 2) if near[sample] else (place,)
            high = max(plain_line(upper, 0, one) for one in around)
            low = min(plain_line(lower, 0, one) for one in around)
            assert above[0, sample] == pytest.approx(high, rel=1e-5, abs=1e-4)
            assert below[0, sample] == pytest.approx(low, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("widened", [False, True])
@pytest.mark.parametrize("day", DAYS, ids=["24 h", "23 h", "25 h"])
def test_a_slot_has_its_samples_of_that_day(day: CivilDay, *, widened: bool) -> None:
    samples = day.samples(STEP_MS)
    values = np.arange(samples, dtype=np.float32)[None]
    found, expected = gather_slots(values, day, widened=widened)
    quarters = day.quarters.tolist()
    for slot in range(48):
        inside = {place for place, quarter in enumerate(quarters) if quarter // 2 == slot}
        if widened:
            inside |= {place + side for place in inside for side in (-1, 1)}
        there = [sample for sample in range(samples) if sample // PER_QUARTER in inside]
        known = found[0, slot][~np.isnan(found[0, slot])]
        assert sorted(known.tolist()) == there
        assert expected[slot] == len(there)


@pytest.mark.parametrize("day", DAYS, ids=["24 h", "23 h", "25 h"])
def test_maxima_are_of_hours_of_the_wall_clock(day: CivilDay) -> None:
    samples = day.samples(STEP_MS)
    score = np.random.default_rng(3).random((2, samples)).astype(np.float32)
    score[0, ::5] = np.nan
    score[1, :24] = np.nan  # two hours
    found = hourly_maxima(score, day)
    hour = np.repeat(day.quarters // 4, PER_QUARTER)
    for row, wall in np.ndindex(2, 24):
        there = [value for value in score[row, hour == wall].tolist() if not math.isnan(value)]
        np.testing.assert_array_equal(found[row, wall], max(there, default=np.nan))


def test_a_face_continues_into_the_days_beside_it() -> None:
    week = np.arange(7 * 48, dtype=np.float32).reshape(1, 7, 48)
    sunday = of_week(week, 6)[0]
    assert sunday[:PAD].tolist() == [285, 286, 287]  # Saturday
    assert sunday[-PAD:].tolist() == [0, 1, 2]  # Monday
    assert wrap_day(week[:, 0])[0, [0, PAD, -1]].tolist() == [45, 0, 2]
