"""What the night says of series that are young, silent, sparse or gone."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.blocks import OUTCOMES, PROFILES, REASONS, Float32s, Outcome, Profile, Reason
from rules.baseline.civil import CivilDay
from rules.baseline.series import Metric
from tests.unit.rules.baseline.days import Sampler, after, daily, day_of

Told = tuple[Outcome, Reason, int]


def told(nights: int, sampler: Sampler, metric: Metric = Metric.PRODUCE_RATE) -> Told:
    _, night = after(nights, sampler, metric=metric)
    return OUTCOMES[night.outcome[0]], REASONS[night.reason[0]], int(night.slots[0])


def seen(first: float, last: float) -> Sampler:
    """Return a series that is measured between two times, in days since the first."""

    def sampled(day: CivilDay, hour: Float32s) -> Float32s:
        at = day.number - day_of(0).number + hour / 24
        return np.where((at >= first) & (at < last), daily(day, hour), np.float32(np.nan))

    return sampled


def rarely(day: CivilDay, hour: Float32s) -> Float32s:
    """Return a series of which one sample in ten is not zero."""
    return np.where(np.arange(len(hour)) % 10 == 0, np.float32(5), np.float32(0))[None]


@pytest.mark.parametrize(
    ("nights", "sampler", "outcome", "reason", "slots"),
    [
        (1, seen(23 / 24, 9), Outcome.YOUNG, Reason.FEW_HOURS, 0),
        (1, seen(12 / 24, 9), Outcome.YOUNG, Reason.FIRST_DAY, 48),
        (1, seen(0, 9), Outcome.BANDED, Reason.FIRST_WEEKS, 48),
        (13, seen(0, 99), Outcome.BANDED, Reason.FIRST_WEEKS, 48),
        (14, seen(0, 99), Outcome.BANDED, Reason.LEARNT, 48),
        (20, seen(0, 19), Outcome.NO_DATA, Reason.SILENT_DAY, 48),
        (26, seen(0, 19), Outcome.VANISHED, Reason.SILENT_WEEK, 0),
        (1, seen(5, 9), Outcome.VANISHED, Reason.SILENT_WEEK, 0),
        (9, rarely, Outcome.SPARSE, Reason.MOSTLY_ZERO, 0),
    ],
)
def test_outcomes(
    nights: int, sampler: Sampler, outcome: Outcome, reason: Reason, slots: int
) -> None:
    assert told(nights, sampler) == (outcome, reason, slots)


def test_lag_that_is_mostly_zero_has_a_band() -> None:
    assert told(9, rarely, Metric.READ_COMMITTED_LAG)[0] is Outcome.BANDED


def test_a_state_is_given_up_after_35_days_of_silence() -> None:
    sampler = seen(0, 1)
    states, night = after(35, sampler)
    assert night.is_kept.tolist() == [True]
    assert after(1, sampler, first=35, states=states)[1].is_kept.tolist() == [False]


def test_a_series_that_comes_back_is_young_no_more() -> None:
    def back(day: CivilDay, hour: Float32s) -> Float32s:
        return (seen(0, 5) if day.number < day_of(20).number else seen(20, 99))(day, hour)

    assert told(21, back)[:2] == (Outcome.BANDED, Reason.LEARNT)


def test_the_profile_follows_the_cycle_of_the_series() -> None:
    def flat(day: CivilDay, hour: Float32s) -> Float32s:
        return np.random.default_rng(day.number).normal(50, 5, (1, len(hour))).astype(np.float32)

    def weekly(day: CivilDay, hour: Float32s) -> Float32s:
        return daily(day, hour) * np.float32(0.3 if day.weekday >= 5 else 1)

    for sampler, profile in (
        (flat, Profile.CONSTANT),
        (daily, Profile.DAILY),
        (weekly, Profile.WEEKLY),
    ):
        _, night = after(29, sampler)
        assert PROFILES[night.profile[0]] is profile


def test_a_silent_day_leaves_the_band_as_it_was() -> None:
    states, before = after(20, seen(0, 20))
    _, night = after(1, seen(0, 20), first=20, states=states)
    np.testing.assert_array_equal(night.profile, before.profile)
    np.testing.assert_array_equal(night.delta, before.delta)
    assert night.slots[0] == before.slots[0]
