"""Draws what happens when; each pipeline's draws are its own, so that a larger fleet adds only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Final

import numpy as np

from service.sandbox.simulator.fleet import Pipeline, Traffic
from service.sandbox.simulator.grid import HOUR_MS, civil_ms
from service.sandbox.simulator.occasions import OFTEN, Kind, Occasion

MINUTE_MS: Final = 60_000
WEEKDAYS: Final = 5
INCIDENT_PER_WEEK: Final = 0.5
DEPLOY_PER_WEEKDAY: Final = 0.45
REBALANCE_PER_DAY: Final = 0.3
OUTAGE_PER_DAY: Final = 0.1
LEVEL_SHIFT: Final = 0.35  # of the pipelines, once
MINUTES: Final = {  # how long an incident lasts
    Kind.SLOW_CONSUMER: (90, 240),
    Kind.DEAD_PARTITION: (20, 120),
    Kind.POISON_PILL: (20, 240),
    Kind.PRODUCER_DROP: (10, 60),
    Kind.SURGE: (20, 90),
    Kind.ERROR_STEP: (15, 120),
    Kind.STUCK_TRANSACTION: (15, 90),
    Kind.COLLECTOR_OUTAGE: (5, 45),
}
LEAST_ERRORS: Final = 0.5  # records per second: less is nobody's incident
QUIET_BEFORE_MS: Final = HOUR_MS  # nothing else happens so long before an incident ...
QUIET_AFTER_MS: Final = 4 * HOUR_MS  # ... and after it, so that what is seen has one cause


def draw_outages(seed: int, days: Sequence[date], zone: str) -> list[Occasion]:
    """Return when nothing is collected, in order."""
    rng = np.random.default_rng([seed, 3])
    outages = []
    for day in days:
        happens, minute = rng.random() < OUTAGE_PER_DAY, int(rng.integers(0, 1300))
        lasts = int(rng.uniform(*MINUTES[Kind.COLLECTOR_OUTAGE]) * MINUTE_MS)
        if happens:
            start = civil_ms(day, minute, zone)
            outages.append(
                Occasion(kind=Kind.COLLECTOR_OUTAGE, start_ms=start, end_ms=start + lasts)
            )
    return outages


def draw_occasions(seed: int, pipeline: Pipeline, days: Sequence[date]) -> list[Occasion]:
    """Return all that happens to a pipeline, by its start."""
    rng = np.random.default_rng([seed, 2, pipeline.index])
    incidents = list(_incidents(rng, pipeline, days))
    ordinary = [*_deploys(rng, pipeline, days), *_rebalances(rng, pipeline, days)]
    apart = [
        occasion
        for occasion in ordinary
        if not any(is_near(occasion, other) for other in incidents)
    ]
    shifts = list(level_shifts(rng, pipeline, days))
    return sorted(
        [*incidents, *apart, *shifts], key=lambda occasion: (occasion.start_ms, occasion.kind)
    )


def is_near(occasion: Occasion, incident: Occasion) -> bool:
    """Whether something happens so near to an incident that what is seen would have two causes."""
    before, after = incident.start_ms - QUIET_BEFORE_MS, incident.end_ms + QUIET_AFTER_MS
    return before < occasion.end_ms and occasion.start_ms < after


def _incidents(
    rng: np.random.Generator, pipeline: Pipeline, days: Sequence[date]
) -> Iterator[Occasion]:
    kinds = [kind for kind in OFTEN if _may_happen(kind, pipeline)]
    is_office = pipeline.traffic is Traffic.OFFICE_HOURS
    for week in range(0, len(days), 7):
        candidates = [
            day for day in days[week : week + 7] if not is_office or day.weekday() < WEEKDAYS
        ]
        happens, chosen = rng.random() < INCIDENT_PER_WEEK, rng.random()
        minute = int(rng.integers(600, 930) if is_office else rng.integers(480, 1140))
        kind = kinds[int(rng.integers(len(kinds)))] if kinds else None
        lasts = rng.random()
        if happens and kind is not None and candidates:
            low, high = MINUTES[kind]
            start = civil_ms(
                candidates[int(chosen * len(candidates))], minute, pipeline.zone
            ) + int(rng.integers(MINUTE_MS))
            yield Occasion(
                kind=kind,
                start_ms=start,
                end_ms=start + int((low + lasts * (high - low)) * MINUTE_MS),
                pipeline=pipeline.index,
                partition=_partition(rng, kind, pipeline),
                strength=_strength(rng, kind, pipeline),
            )


def _may_happen(kind: Kind, pipeline: Pipeline) -> bool:
    if pipeline.traffic is Traffic.SPARSE:
        return False
    if kind is Kind.STUCK_TRANSACTION:
        return pipeline.transaction_seconds is not None
    is_of_reader = kind in (Kind.SLOW_CONSUMER, Kind.POISON_PILL)
    return not (is_of_reader and pipeline.traffic is Traffic.HOURLY_READER)


def _partition(rng: np.random.Generator, kind: Kind, pipeline: Pipeline) -> int | None:
    of_one = (Kind.DEAD_PARTITION, Kind.POISON_PILL, Kind.STUCK_TRANSACTION)
    return int(rng.integers(pipeline.partitions)) if kind in of_one else None


def _strength(rng: np.random.Generator, kind: Kind, pipeline: Pipeline) -> float:
    if kind is Kind.SURGE:
        return 3.0
    if kind is Kind.ERROR_STEP:
        share = float(np.exp(rng.uniform(np.log(0.002), np.log(0.05))))
        return min(max(share, LEAST_ERRORS / (pipeline.rate * pipeline.partitions)), 0.5)
    return 1.0


def _deploys(
    rng: np.random.Generator, pipeline: Pipeline, days: Sequence[date]
) -> Iterator[Occasion]:
    """Give deploys in working hours: one to three pauses, one to three minutes in all."""
    for day in days:
        happens = rng.random() < DEPLOY_PER_WEEKDAY and day.weekday() < WEEKDAYS
        start = civil_ms(day, int(rng.integers(540, 1020)), pipeline.zone)
        teeth, total = int(rng.integers(1, 4)), rng.uniform(60, 180) * 1000
        between = rng.uniform(20, 60) * 1000
        if happens:
            yield _paused(Kind.DEPLOY, start, teeth, (total, between), pipeline)


def _rebalances(
    rng: np.random.Generator, pipeline: Pipeline, days: Sequence[date]
) -> Iterator[Occasion]:
    for day in days:
        happens, minute = rng.random() < REBALANCE_PER_DAY, int(rng.integers(0, 1439))
        lasts = rng.uniform(5, 45) * 1000
        if happens:
            start = civil_ms(day, minute, pipeline.zone)
            yield _paused(Kind.REBALANCE, start, 1, (lasts, 0.0), pipeline)


def _paused(
    kind: Kind, start: int, teeth: int, total_and_between: tuple[float, float], pipeline: Pipeline
) -> Occasion:
    total, between = total_and_between
    pauses = []
    at = start
    for _ in range(teeth):
        pauses.append((at, at + int(total / teeth)))
        at = pauses[-1][1] + int(between)
    return Occasion(
        kind=kind,
        start_ms=start,
        end_ms=pauses[-1][1],
        pipeline=pipeline.index,
        pauses=tuple(pauses),
    )


def level_shifts(
    rng: np.random.Generator, pipeline: Pipeline, days: Sequence[date]
) -> Iterator[Occasion]:
    """Give at most one: from then on more, or less, is written."""
    happens, at = rng.random() < LEVEL_SHIFT, rng.uniform(0.3, 0.9)
    minute = int(rng.integers(540, 1020))
    more, less = float(rng.uniform(1.3, 2.2)), float(rng.uniform(0.45, 0.75))
    strength = more if rng.random() < 0.6 else less
    day = days[0] + timedelta(days=int(at * len(days)))
    if happens and pipeline.traffic is not Traffic.SPARSE:
        start = civil_ms(day, minute, pipeline.zone)
        yield Occasion(
            kind=Kind.LEVEL_SHIFT,
            start_ms=start,
            end_ms=start,
            pipeline=pipeline.index,
            strength=strength,
        )
