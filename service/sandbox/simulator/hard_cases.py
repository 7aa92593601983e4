"""Draws what is hard to judge: slow degradation, and ordinary things that look like incidents.

They have draws of their own, so that the weeks without them stay as they are, sample for sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np

from service.sandbox.simulator.drawing import MINUTE_MS, WEEKDAYS, is_near, level_shifts
from service.sandbox.simulator.fleet import Pipeline, Traffic
from service.sandbox.simulator.grid import HOUR_MS, civil_ms
from service.sandbox.simulator.occasions import Kind, Occasion

HOLIDAYS: Final = 2  # of the days, for each zone
DEGRADATION: Final = 0.5  # of the pipelines, once in the later three quarters of the days
DEGRADATION_HOURS: Final = (8, 30)
DEGRADATION_SECONDS: Final = (60, 900)  # behind, at its end
NOT_BY_PEOPLE: Final = (Traffic.CONSTANT, Traffic.SPARSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Short:
    """What is over within minutes."""

    kind: Kind
    per_day: float
    lasts_ms: tuple[float, float]
    strength: Callable[[np.random.Generator], float]


BURSTS: Final = _Short(
    kind=Kind.BURST,
    per_day=0.3,
    lasts_ms=(MINUTE_MS, 5 * MINUTE_MS),
    strength=lambda rng: float(rng.uniform(1.5, 4)),
)
BLIPS: Final = _Short(
    kind=Kind.RETRY_BLIP,
    per_day=0.15,
    lasts_ms=(30_000, 180_000),
    strength=lambda rng: float(np.exp(rng.uniform(-5, -2))),  # a share of the records
)


def draw_hard_cases(
    seed: int, pipeline: Pipeline, days: Sequence[date], occasions: Sequence[Occasion]
) -> list[Occasion]:
    """Return what else happens to a pipeline, apart from its incidents."""
    if pipeline.traffic is Traffic.SPARSE:
        return []
    rng = np.random.default_rng([seed, 6, pipeline.index])
    drawn = [
        *_degradations(rng, pipeline, days),
        *_short(rng, pipeline, days, BURSTS),
        *_short(rng, pipeline, days, BLIPS),
        *level_shifts(rng, pipeline, days),
    ]
    incidents = [occasion for occasion in occasions if occasion.is_incident]
    incidents += [
        occasion
        for occasion in drawn
        if occasion.is_incident and not any(is_near(occasion, other) for other in incidents)
    ]
    apart = [
        occasion
        for occasion in drawn
        if occasion in incidents
        or not (occasion.is_incident or any(is_near(occasion, other) for other in incidents))
    ]
    return [*apart, *_holidays(seed, pipeline, days)]


def _degradations(
    rng: np.random.Generator, pipeline: Pipeline, days: Sequence[date]
) -> Iterator[Occasion]:
    happens, at, minute = rng.random() < DEGRADATION, rng.uniform(0.25, 0.95), rng.integers(1439)
    lasts, low_high = rng.uniform(*DEGRADATION_HOURS), np.log(DEGRADATION_SECONDS)
    seconds = float(np.exp(rng.uniform(*low_high)))
    if happens and pipeline.traffic is not Traffic.HOURLY_READER:
        start = civil_ms(days[0] + timedelta(days=int(at * len(days))), int(minute), pipeline.zone)
        yield Occasion(
            kind=Kind.SLOW_DEGRADATION,
            start_ms=start,
            end_ms=start + int(lasts * HOUR_MS),
            pipeline=pipeline.index,
            strength=seconds,
        )


def _short(
    rng: np.random.Generator,
    pipeline: Pipeline,
    days: Sequence[date],
    short: _Short,
) -> Iterator[Occasion]:
    """Give what is over within minutes, on some days."""
    for day in days:
        happens, minute = rng.random() < short.per_day, int(rng.integers(1430))
        lasts, strength = int(rng.uniform(*short.lasts_ms)), short.strength(rng)
        if happens:
            start = civil_ms(day, minute, pipeline.zone)
            yield Occasion(
                kind=short.kind,
                start_ms=start,
                end_ms=start + lasts,
                pipeline=pipeline.index,
                strength=strength,
            )


def _holidays(seed: int, pipeline: Pipeline, days: Sequence[date]) -> Iterator[Occasion]:
    """Give the working days on which a zone rests: the same ones for all of its pipelines."""
    of_zone = np.random.default_rng([seed, 7, *pipeline.zone.encode()])
    working = [day for day in days if day.weekday() < WEEKDAYS]
    resting = of_zone.choice(len(working), HOLIDAYS, replace=False)
    share = float(np.random.default_rng([seed, 8, pipeline.index]).uniform(0.15, 0.5))
    for place in sorted(resting.tolist()) if pipeline.traffic not in NOT_BY_PEOPLE else ():
        start = civil_ms(working[place], 0, pipeline.zone)
        yield Occasion(
            kind=Kind.HOLIDAY,
            start_ms=start,
            end_ms=civil_ms(working[place] + timedelta(days=1), 0, pipeline.zone),
            pipeline=pipeline.index,
            strength=share,
        )
