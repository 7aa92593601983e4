"""Days of made-up series, and nights over many of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

import numpy as np

from rules.baseline.blocks import METRIC_CODES, BaselineBlock, DayBlock, Float32s
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.daily_step import advance
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock

FIRST: Final = date(2026, 1, 5)  # a Monday
STEP_MS: Final = 300_000  # three samples in a quarter of an hour: days are small
SETTINGS: Final = BaselineSettings()

Sampler = Callable[
    [CivilDay, Float32s], Float32s
]  # (day, hours of the wall clock) -> values (n, samples)


def day_of(number: int, zone: str = "UTC") -> CivilDay:
    return civil_day(FIRST + timedelta(days=number), zone)


def block(
    values: Float32s, metric: Metric = Metric.PRODUCE_RATE, step_ms: int = STEP_MS
) -> DayBlock:
    """Return a day of series that are numbered from 0."""
    made = np.atleast_2d(values).astype(np.float32)
    return DayBlock(
        series_id=np.arange(len(made)),
        metric=np.full(len(made), METRIC_CODES[metric], np.uint8),
        step_ms=step_ms,
        values=made,
    )


def hours(day: CivilDay, step_ms: int = STEP_MS) -> Float32s:
    """Return the hour of the wall clock, with fractions, of every sample."""
    per_quarter = day.samples(step_ms) // len(day.quarters)
    within = np.arange(per_quarter) / (4 * per_quarter)
    found: Float32s = (day.quarters[:, None] / 4 + within).ravel().astype(np.float32)
    return found


def noise(day: CivilDay, shape: tuple[int, ...]) -> Float32s:
    """Return the same small deviations for the same day."""
    return np.random.default_rng(day.number).normal(size=shape).astype(np.float32)


def daily(day: CivilDay, hour: Float32s) -> Float32s:
    """Return a series with a cycle of a day, from 40 to 160, and little noise."""
    cycle: Float32s = 100 + 60 * np.sin(hour * np.float32(np.pi / 12))[None]
    return cycle + noise(day, (1, len(hour)))


def after(
    nights: int,
    sampler: Sampler,
    *,
    zone: str = "UTC",
    metric: Metric = Metric.PRODUCE_RATE,
    first: int = 0,
    states: StateBlock | None = None,
) -> tuple[StateBlock, BaselineBlock]:
    """Return states and baselines after so many nights, one after another."""
    baselines: BaselineBlock | None = None
    for number in range(first, first + nights):
        day = day_of(number, zone)
        made = block(sampler(day, hours(day)), metric)
        before = StateBlock.new(len(made)) if states is None else states
        states, baselines = advance(before, made, day, SETTINGS)
    if states is None or baselines is None:
        raise ValueError("no night was asked for")
    return states, baselines


def with_level(sampler: Sampler, since: int, summand: float, factor: float = 1) -> Sampler:
    """Return a sampler whose level is another one from a day on, at 09:00 of the wall clock."""

    def sampled(day: CivilDay, hour: Float32s) -> Float32s:
        is_after = day.number - FIRST.toordinal() + hour / 24 >= since + 9 / 24
        values = sampler(day, hour)
        return np.where(is_after, values * np.float32(factor) + np.float32(summand), values)

    return sampled
