"""Windows of open alerts: nothing is learnt from them, but a level that outlasts a day is followed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rules.baseline.daily_step import advance
from rules.baseline.masking import select_for_delta
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import SETTINGS, after, block, daily, day_of, hours

HOUR = 12  # samples


def masked_days(stretches: list[list[tuple[int, int]]]) -> list[list[int]]:
    """Return the hours that the level is corrected by, day by day, for masks in hours of each day."""
    records = StateBlock.new(1).records
    used: list[list[int]] = []
    for number, day_stretches in enumerate(stretches):
        values = np.zeros((1, day_of(number).samples(300_000)), np.float32)
        masked = np.zeros(values.shape, np.bool_)
        for first, end in day_stretches:
            masked[0, first * HOUR : end * HOUR] = True
        found = select_for_delta(records, values, replace(block(values), masked=masked))
        used.append(np.flatnonzero(~np.isnan(found[0, HOUR // 2 :: HOUR])).tolist())
    return used


def test_a_mask_counts_for_the_level_once_it_is_a_day_old() -> None:
    all_hours = list(range(24))
    assert masked_days([[(6, 24)], [(0, 24)], [(0, 12)], []]) == [
        list(range(6)),
        list(range(6, 24)),
        all_hours,
        all_hours,
    ]
    assert masked_days([[(6, 24)], [(0, 5), (6, 24)], [(0, 24)]]) == [
        list(range(6)),
        [5],
        list(range(6, 24)),
    ]


def test_nothing_is_learnt_from_masked_samples() -> None:
    states, _ = after(20, daily)
    day = day_of(20)
    plain = block(daily(day, hours(day)))
    wild, masked = plain.values.copy(), np.zeros(plain.values.shape, np.bool_)
    wild[0, 100:150] = 1e6
    masked[0, 100:150] = True
    learnt, _ = advance(states, replace(plain, values=wild, masked=masked), day, SETTINGS)
    gap = np.where(masked, np.float32(np.nan), plain.values)
    without, _ = advance(states, replace(plain, values=gap), day, SETTINGS)
    for name in ("levels", "above", "below", "scale", "maxima", "errors", "delta", "day_median"):
        np.testing.assert_array_equal(learnt.records[name], without.records[name])


def test_a_level_under_a_lasting_mask_is_followed_by_the_correction_alone() -> None:
    states, before = after(20, daily, metric=Metric.OPEN_SPAN)
    night = before
    for number in (20, 21, 22):  # the first day is too young, and two have to agree
        day = day_of(number)
        made = block(daily(day, hours(day)) + 500, Metric.OPEN_SPAN)
        masked = np.ones(made.values.shape, np.bool_)
        states, night = advance(states, replace(made, masked=masked), day, SETTINGS)
    assert night.delta[0] == pytest.approx(500, abs=5)
    assert night.changed_at_ms.tolist() == [0]
    assert (night.mid[0, :48] - 500)[20] == pytest.approx(before.mid[0, 20], abs=5)
