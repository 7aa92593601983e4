"""New levels: told on the first night, followed by the ring on the second."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.blocks import Float32s
from rules.baseline.civil import CivilDay
from tests.unit.rules.baseline.days import Sampler, after, daily, day_of, hours, with_level

HOUR_MS = 3_600_000


def weekly(day: CivilDay, hour: Float32s) -> Float32s:
    """Return a series that rests at week-ends."""
    return daily(day, hour) * np.float32(0.3 if day.weekday >= 5 else 1)


def test_a_new_level_is_told_with_its_time_and_size() -> None:
    _, night = after(21, with_level(daily, 20, 200))
    assert abs(night.changed_at_ms[0] - (day_of(20).start_ms + 9 * HOUR_MS)) <= HOUR_MS
    assert night.changed_before[0] == pytest.approx(100, abs=15)
    assert night.changed_after[0] - night.changed_before[0] == pytest.approx(200, abs=5)


@pytest.mark.parametrize(("summand", "factor"), [(200, 1), (-30, 1), (0, 3)])
def test_the_ring_follows_a_level_that_lasts_and_keeps_its_shape(
    summand: float, factor: float
) -> None:
    shifted = with_level(daily, 20, summand, factor)
    states, night = after(22, shifted)
    expected = shifted(day_of(22), hours(day_of(22))).reshape(48, -1).mean(axis=1)
    np.testing.assert_allclose(night.mid[0, : night.slots[0]][:48], expected, rtol=0.05, atol=3)
    assert abs(night.delta[0]) < 2  # the level is in the profile itself
    _, later = after(12, shifted, first=22, states=states)
    np.testing.assert_allclose(later.mid[0, :48], expected, rtol=0.05, atol=3)


def test_a_level_that_does_not_last_is_forgotten() -> None:
    def one_day(day: CivilDay, hour: Float32s) -> Float32s:
        is_that_day = day.number == day_of(20).number
        return (with_level(daily, 20, 200) if is_that_day else daily)(day, hour)

    _, night = after(22, one_day)
    assert night.changed_at_ms.tolist() == [0]
    assert np.isnan([night.changed_before[0], night.changed_after[0]]).all()


@pytest.mark.parametrize("sampler", [daily, weekly], ids=["daily", "weekly"])
def test_a_cycle_is_no_new_level(sampler: Sampler) -> None:
    states, _ = after(7, sampler)
    for number in range(7, 30):
        states, night = after(1, sampler, first=number, states=states)
        assert night.changed_at_ms.tolist() == [0], number


def test_a_change_is_told_for_four_weeks() -> None:
    shifted = with_level(daily, 20, 200)
    states, _ = after(47, shifted)
    assert after(1, shifted, first=47, states=states)[1].changed_at_ms[0] > 0
    assert after(3, shifted, first=47, states=states)[1].changed_at_ms[0] == 0
