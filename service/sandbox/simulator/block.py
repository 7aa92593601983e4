"""Simulates the queues of some pipelines, one civil day after the other.

Everything comes from offsets: records are written (log end), decided (last stable offset) and read
(committed offset), and each series is computed from these, so that those of a group fit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.series import Metric
from service.sandbox.simulator import effects
from service.sandbox.simulator.fleet import PER_PARTITION, Pipeline
from service.sandbox.simulator.grid import COARSE_MS, HOUR_MS, DayGrid
from service.sandbox.simulator.occasions import INCIDENTS, Kind, Occasion
from service.sandbox.simulator.rows import Rows
from service.sandbox.simulator.traffic import Floats, TrafficModel, at_samples

LEAST_CAPACITY: Final = 50.0  # records per second
REPLICATION_SECONDS: Final = 0.01
GIVEN_UP_MS: Final = 120_000  # the clients' delivery timeout
ERROR_BLIP: Final = 0.0005  # of the samples
SEQUENCE_BLIP: Final = 0.00005
RETAINED_BEFORE_SECONDS: Final = 7 * 86_400  # what was written before the first day

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """The offsets of all partitions at the end of a day; one row per partition."""

    ends: Offsets  # of all samples of the day
    times_ms: NDArray[np.int64]
    stable: Offsets
    committed: Offsets
    waiting: Floats


@dataclass(frozen=True, slots=True)
class _Day:
    """The offsets of a day; a row per partition, a column per sample."""

    grid: DayGrid
    before: _Now
    ends: Offsets
    stable: Offsets
    committed: Offsets


class Block:
    """Some pipelines; call `day` for one day after the other."""

    def __init__(
        self, seed: Sequence[int], pipelines: Sequence[Pipeline], occasions: Sequence[Occasion]
    ) -> None:
        """Take pipelines and what happens to them; `seed` is that of this block."""
        self._seed = seed
        self._rows = Rows(pipelines)
        self._occasions = occasions
        self._traffic: TrafficModel | None = None
        self._now: _Now | None = None
        self._open = [occasion for occasion in occasions if occasion.kind in INCIDENTS]
        self.over_ms: dict[Occasion, int] = {}  # when an incident's backlog had been read

    def day(self, grid: DayGrid) -> NDArray[np.float32]:
        """Return the day's samples: a row per series in the pipelines' order, a column per sample."""
        rng = np.random.default_rng([*self._seed, grid.day.toordinal()])
        rows, occasions = self._rows, self._today(grid)
        traffic = self._traffic or TrafficModel(rows.pipelines, grid.start_ms)
        self._traffic = traffic
        level = effects.levels(rows, self._occasions, grid)
        rates = at_samples(traffic.rates(grid, rng), grid)[rows.pipeline] * rows.weights[:, None]
        rates *= level
        meant = rates * effects.written(rows, occasions, grid)
        before = self._now or _first(grid, meant)
        counts = _counts(meant, rows, grid, rng)
        ends = before.ends[:, -1:] + np.cumsum(counts, axis=1)
        stable = self._stable(ends, meant, before, rng)
        effects.held_back(stable, before.stable, rows, occasions, grid)
        grown = traffic.growth(grid.times_ms[:: COARSE_MS // grid.step_ms])
        # Offsets that compaction has removed are passed without being read.
        headroom = rows.each(lambda pipeline: pipeline.headroom / (1 - pipeline.holes))
        most = traffic.busiest * headroom[_firsts(rows)]
        capacity = np.repeat(grown * most[:, None], COARSE_MS // grid.step_ms, axis=1)
        capacity = capacity[rows.pipeline] * rows.weights[:, None] * level
        capacity = np.maximum(capacity, LEAST_CAPACITY) * effects.read(rows, occasions, grid)
        arrivals = np.diff(stable, axis=1, prepend=before.stable[:, None])
        queue = waiting(arrivals, capacity * grid.step_seconds, before.waiting)
        seconds = self._seconds_under_way(arrivals.shape, rng)
        seconds += effects.seconds_behind(rows, occasions, grid)
        under_way = arrivals * seconds / grid.step_seconds
        committed = _committed(stable, queue + under_way, before, rng)
        self._retain(committed, ends, before, grid)
        self._note_ends(queue, grid)
        values = self._series(_Day(grid, before, ends, stable, committed), rates, rng)
        left = np.minimum(queue[:, -1], stable[:, -1] - committed[:, -1])
        self._now = _Now(
            ends=ends,
            times_ms=grid.times_ms,
            stable=stable[:, -1],
            committed=committed[:, -1],
            waiting=left,
        )
        return values

    def _today(self, grid: DayGrid) -> list[Occasion]:
        """Return what happens on a day, or in the step before it."""
        first = grid.start_ms - grid.step_ms
        begun = [occasion for occasion in self._occasions if occasion.start_ms < grid.end_ms]
        return [occasion for occasion in begun if occasion.end_ms + GIVEN_UP_MS > first]

    def _stable(
        self, ends: Offsets, meant: Floats, before: _Now, rng: np.random.Generator
    ) -> Offsets:
        """Return the last stable offsets: transactions are open for some seconds."""
        seconds = np.nan_to_num(self._rows.each(lambda pipeline: pipeline.transaction_seconds))
        is_open = (meant * seconds[:, None] * rng.uniform(0.1, 1.0, ends.shape)).astype(np.int64)
        stable = np.maximum(ends - is_open, before.stable[:, None])
        risen: Offsets = np.maximum.accumulate(stable, axis=1)
        return risen

    def _seconds_under_way(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return the age in seconds of the newest record that a commit covers."""
        latency = self._rows.each(lambda pipeline: pipeline.latency_seconds)[:, None]
        pace = self._rows.each(lambda pipeline: pipeline.commit_seconds)[:, None]
        seconds: Floats = latency + pace * rng.uniform(0, 1, shape)
        return seconds

    def _retain(self, committed: Offsets, ends: Offsets, before: _Now, grid: DayGrid) -> None:
        """Let readers go on, in place, where retention has removed the records they would read next."""
        retention = self._rows.each(lambda pipeline: pipeline.retention_seconds)
        for row in np.flatnonzero(~np.isnan(retention)):
            times = np.concatenate([before.times_ms, grid.times_ms])
            written = np.concatenate([before.ends[row], ends[row]])
            start = np.interp(grid.times_ms - retention[row] * 1000, times, written)
            np.maximum(committed[row], start.astype(np.int64), out=committed[row])

    def _note_ends(self, queue: Floats, grid: DayGrid) -> None:
        """Remember which incidents are over: ended, and their backlog has been read."""
        for incident in [incident for incident in self._open if incident.end_ms < grid.end_ms]:
            after = slice(grid.taken(incident.end_ms, grid.end_ms).start, None)
            free = np.flatnonzero((queue[self._rows.of(incident), after] < 1).all(axis=0))
            if len(free):
                self.over_ms[incident] = int(grid.times_ms[after][free[0]])
                self._open.remove(incident)

    def _series(self, day: _Day, rates: Floats, rng: np.random.Generator) -> NDArray[np.float32]:
        columns = _columns(day, rates, rng)
        errors = self._errors(day, rates, rng)
        parts: list[Floats] = []
        for at, pipeline in enumerate(self._rows.pipelines):
            where = self._rows.of_pipeline(pipeline.index)
            ours = np.stack([columns[metric][where] for metric in PER_PARTITION], axis=1)
            parts += [ours.reshape(-1, day.grid.count), errors[at : at + 1]]
        return np.concatenate(parts).astype(np.float32)

    def _errors(self, day: _Day, rates: Floats, rng: np.random.Generator) -> Floats:
        """Return the records per second that each pipeline's producers give up."""
        grid, rows = day.grid, self._rows
        meant = np.zeros_like(rates)
        for occasion in self._today(grid):
            if occasion.kind in (Kind.ERROR_STEP, Kind.RETRY_BLIP):
                where, share = grid.share(occasion.start_ms, occasion.end_ms)
                meant[rows.of(occasion), where] += (
                    rates[rows.of(occasion), where] * share * occasion.strength
                )
            elif occasion.kind is Kind.DEAD_PARTITION:
                where, share = grid.share(
                    occasion.start_ms + GIVEN_UP_MS, occasion.end_ms + GIVEN_UP_MS
                )
                meant[rows.of(occasion), where] += rates[rows.of(occasion), where] * share
        total = rows.total(meant)
        blips = rng.random(total.shape) < ERROR_BLIP
        given_up: Floats = (rng.poisson(total * grid.step_seconds) + blips) / grid.step_seconds
        return given_up


def _columns(day: _Day, rates: Floats, rng: np.random.Generator) -> Mapping[Metric, Floats]:
    """Return the series of partitions by metric, each with a row per partition."""
    before, seconds = day.before, day.grid.step_seconds
    all_ends = np.concatenate([before.ends, day.ends], axis=1)
    times = np.concatenate([before.times_ms, day.grid.times_ms])
    behind = np.stack(
        [
            seconds_behind(ends, times, committed)
            for ends, committed in zip(all_ends, day.committed, strict=True)
        ]
    )
    first = before.ends[:, -1:], before.committed[:, None]
    shape = rates.shape
    columns = {
        Metric.READ_COMMITTED_LAG: day.stable - day.committed,
        Metric.READ_UNCOMMITTED_LAG: day.ends - day.committed,
        Metric.READ_COMMITTED_LAG_SECONDS: np.where(day.stable > day.committed, behind, 0.0),
        Metric.READ_UNCOMMITTED_LAG_SECONDS: behind,
        Metric.CONSUME_RATE: np.diff(day.committed, axis=1, prepend=first[1]) / seconds,
        Metric.PRODUCE_RATE: np.diff(day.ends, axis=1, prepend=first[0]) / seconds,
        Metric.OPEN_SPAN: day.ends - day.stable,
        Metric.UNREPLICATED_SPAN: rng.poisson(rates * REPLICATION_SECONDS),
        Metric.SEQUENCE_ERRORS: (rng.random(shape, np.float32) < SEQUENCE_BLIP) / seconds,
    }
    return {metric: np.asarray(values, dtype=np.float64) for metric, values in columns.items()}


def _counts(meant: Floats, rows: Rows, grid: DayGrid, rng: np.random.Generator) -> Offsets:
    """Return how many records are written in each step."""
    jitter = rows.each(lambda pipeline: pipeline.jitter)[:, None]
    uneven = np.maximum(1 + jitter * rng.standard_normal(meant.shape), 0)
    counts: Offsets = rng.poisson(meant * uneven * grid.step_seconds).astype(np.int64)
    return counts


def _committed(stable: Offsets, behind: Floats, before: _Now, rng: np.random.Generator) -> Offsets:
    """Return the committed offsets: so far behind the last stable ones, and never falling."""
    rounded = np.floor(behind + rng.random(behind.shape)).astype(np.int64)
    committed = np.maximum(stable - rounded, before.committed[:, None])
    risen: Offsets = np.minimum(np.maximum.accumulate(committed, axis=1), stable)
    return risen


def _firsts(rows: Rows) -> NDArray[np.int64]:
    """Return the first row of each pipeline."""
    starts = [rows.of_pipeline(pipeline.index).start for pipeline in rows.pipelines]
    return np.array(starts, dtype=np.int64)


def _first(grid: DayGrid, meant: Floats) -> _Now:
    """Return the state before the first day: an hour at its first pace, all of it read."""
    steps = HOUR_MS // grid.step_ms
    pace = meant[:, :1] * grid.step_seconds
    base = (meant[:, :1] * RETAINED_BEFORE_SECONDS).astype(np.int64)
    ends = base + np.floor(pace * np.arange(1, steps + 1)).astype(np.int64)
    last = ends[:, -1]
    return _Now(
        ends=ends,
        times_ms=grid.start_ms + np.arange(-steps, 0, dtype=np.int64) * grid.step_ms,
        stable=last,
        committed=last,
        waiting=np.zeros(len(last)),
    )


def waiting(arrivals: Floats, capacity: Floats, before: Floats) -> Floats:
    """Return what waits after each step: what came and could not be read yet, never less than 0.

    All are records; `before` is what waited at first, one per row. (Lindley's recursion, as a sum.)
    """
    total = np.cumsum(arrivals - capacity, axis=1)
    lowest = np.minimum.accumulate(total, axis=1)
    left: Floats = total + np.maximum(before[:, None], -lowest)
    return left


def seconds_behind(ends: Offsets, times_ms: Offsets, committed: Offsets) -> Floats:
    """Return for how long the next record to read has been there, at the last samples of a row.

    Args:
        ends: the end of the log at each time, never falling; one partition.
        times_ms: the time of each; as many.
        committed: the next offset to read, at the last times; at most as many.

    Returns:
        Seconds, 0 where nothing is to be read. A record is taken to have come at an even pace
        between the two samples around it.
    """
    at = np.searchsorted(ends, committed, side="right")
    now = times_ms[len(times_ms) - len(committed) :]
    is_there = at < len(ends)
    after = np.clip(at, 1, len(ends) - 1)
    came, step = ends[after] - ends[after - 1], times_ms[after] - times_ms[after - 1]
    part = np.clip((committed - ends[after - 1]) / np.maximum(came, 1), 0, 1)
    since = times_ms[after - 1] + part * step
    behind: Floats = np.where(is_there, np.maximum(now - since, 0) / 1000, 0.0)
    return behind
