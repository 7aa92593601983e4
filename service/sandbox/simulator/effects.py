"""What occasions do to writing and reading, as factors per row (a partition) and sample."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.sandbox.simulator.fleet import Batch, Pipeline, Traffic
from service.sandbox.simulator.grid import HOUR_MS, DayGrid, civil_ms
from service.sandbox.simulator.occasions import Kind, Occasion
from service.sandbox.simulator.rows import Rows
from service.sandbox.simulator.traffic import Floats

SLOWER_PER_MINUTE: Final = 1.05
READER_MS: Final = 360_000  # how long a reader that comes once an hour reads
READER_HEADROOM: Final = 15.0  # it has an hour to read in that time
DAWN_MS: Final = 6 * HOUR_MS  # so long a holiday needs to begin
DUSK_MS: Final = 3 * HOUR_MS  # and so long to end
FOREVER_MS: Final = 2**62


def levels(rows: Rows, occasions: Sequence[Occasion], grid: DayGrid) -> Floats:
    """Return how many times as much is written, and can be read, since the level shifted."""
    factors = np.ones((rows.count, grid.count))
    for occasion in occasions:
        if occasion.kind is Kind.LEVEL_SHIFT and occasion.start_ms < grid.end_ms:
            where, share = grid.share(occasion.start_ms, FOREVER_MS)
            factors[rows.of(occasion), where] *= 1 + (occasion.strength - 1) * share
    return factors


def written(rows: Rows, occasions: Sequence[Occasion], grid: DayGrid) -> Floats:
    """Return the factors of what is written, beside those of levels."""
    factors = np.ones((rows.count, grid.count))
    for pipeline in rows.pipelines:
        if pipeline.batch is not None:
            where, share = _batch_share(pipeline.batch, grid)
            factors[rows.of_pipeline(pipeline.index), where] *= 1 + share
    for occasion in occasions:
        strength = {
            Kind.SURGE: occasion.strength,
            Kind.PRODUCER_DROP: 0.0,
            Kind.DEAD_PARTITION: 0.0,
            Kind.BURST: occasion.strength,
        }
        if occasion.kind in strength:
            where, share = grid.share(occasion.start_ms, occasion.end_ms)
            factors[rows.of(occasion), where] *= 1 + (strength[occasion.kind] - 1) * share
        elif occasion.kind is Kind.HOLIDAY:
            times = [occasion.start_ms, occasion.start_ms + DAWN_MS, occasion.end_ms - DUSK_MS]
            levels = [1, occasion.strength, occasion.strength, 1]
            rests = np.interp(grid.times_ms, [*times, occasion.end_ms], levels)
            factors[rows.of(occasion)] *= rests
    return factors


def seconds_behind(rows: Rows, occasions: Sequence[Occasion], grid: DayGrid) -> Floats:
    """Return how many seconds more than usual a group is behind."""
    seconds = np.zeros((rows.count, grid.count))
    for occasion in occasions:
        if occasion.kind is Kind.SLOW_DEGRADATION:
            where = grid.taken(occasion.start_ms, occasion.end_ms)
            part = (grid.times_ms[where] - occasion.start_ms) / (
                occasion.end_ms - occasion.start_ms
            )
            seconds[rows.of(occasion), where] += occasion.strength * part
    return seconds


def _batch_share(batch: Batch, grid: DayGrid) -> tuple[slice, Floats]:
    """Return how much more a job writes; it may have begun in the evening before."""
    more = np.zeros(grid.count)
    for away in (-1, 0, 1):  # the job's day may be that of another zone
        start = civil_ms(grid.day + timedelta(days=away), batch.minute, batch.zone)
        where, share = grid.share(start, start + round(batch.seconds * 1000))
        more[where] += (batch.factor - 1) * share
    return slice(0, grid.count), more


def read(rows: Rows, occasions: Sequence[Occasion], grid: DayGrid) -> Floats:
    """Return the factors of what can be read."""
    factors = np.ones((rows.count, grid.count))
    for pipeline in rows.pipelines:
        if pipeline.traffic is Traffic.HOURLY_READER:
            factors[rows.of_pipeline(pipeline.index)] = _hourly(pipeline, grid)
    for occasion in occasions:
        for start, end in occasion.pauses:
            where, share = grid.share(start, end)
            factors[rows.of(occasion), where] *= 1 - share
        where, share = grid.share(occasion.start_ms, occasion.end_ms)
        if occasion.kind is Kind.POISON_PILL:
            factors[rows.of(occasion), where] *= 1 - share
        elif occasion.kind is Kind.SLOW_CONSUMER:
            minutes = np.maximum(grid.times_ms[where] - occasion.start_ms, 0) / 60_000
            factors[rows.of(occasion), where] *= SLOWER_PER_MINUTE**-minutes * share + (1 - share)
    return factors


def _hourly(pipeline: Pipeline, grid: DayGrid) -> Floats:
    minute_ms = 60_000 * (pipeline.index * 7 % 54)
    since = (grid.times_ms - minute_ms) % HOUR_MS
    share = np.clip(np.minimum(since, READER_MS) - (since - grid.step_ms), 0, grid.step_ms)
    reads: Floats = share / grid.step_ms * READER_HEADROOM
    return reads


def held_back(
    stable: NDArray[np.int64],
    before: NDArray[np.int64],
    rows: Rows,
    occasions: Sequence[Occasion],
    grid: DayGrid,
) -> None:
    """Hold last stable offsets, in place, while a transaction is stuck.

    Args:
        stable: last stable offsets; one row per partition, one column per sample.
        before: those at the end of the day before.
        rows: which rows are whose.
        occasions: what happens.
        grid: the day.
    """
    for occasion in occasions:
        if occasion.kind is Kind.STUCK_TRANSACTION:
            where, row = grid.taken(occasion.start_ms, occasion.end_ms), rows.of(occasion)
            if where.start < where.stop:
                at = stable[row, where.start - 1] if where.start else before[row]
                stable[row, where] = at[:, None]
