"""A pipeline and its days, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.series import Metric
from service.sandbox.simulator.block import Block
from service.sandbox.simulator.fleet import PER_PARTITION, Pipeline, Traffic
from service.sandbox.simulator.grid import DayGrid, day_grid
from service.sandbox.simulator.occasions import Kind, Occasion

DAY: Final = date(2026, 3, 25)  # a Wednesday; clocks in Berlin are changed on the 29th
ZONE: Final = "Europe/Berlin"
STEP_MS: Final = 30_000
PIPELINE: Final = Pipeline(
    index=0,
    topic="orders",
    group="billing",
    weights=(1.0, 1.0),
    traffic=Traffic.DAILY,
    zone=ZONE,
    rate=100.0,
    waves=((0.8, 14.0), (0.2, 10.0)),
    weekend=(0.5, 0.4),
    noise=0.03,
    jitter=0.02,
    drift=0.0,
    headroom=2.0,
    latency_seconds=0.5,
    commit_seconds=1.0,
    transaction_seconds=2.0,
    retention_seconds=None,
    batch=None,
    holes=0.0,
)

Values = NDArray[np.float32]


class Days:
    """The series of one pipeline over some days, as columns over all of them."""

    def __init__(
        self, pipeline: Pipeline = PIPELINE, *occasions: Occasion, days: int = 1, day: date = DAY
    ) -> None:
        self.pipeline = pipeline
        self.grids = [
            day_grid(day + timedelta(days=number), ZONE, STEP_MS) for number in range(days)
        ]
        self.block = Block([7], [pipeline], occasions)
        self.values: Values = np.concatenate([self.block.day(grid) for grid in self.grids], axis=1)
        self.times_ms = np.concatenate([grid.times_ms for grid in self.grids])

    def of(self, metric: Metric, partition: int = 0) -> Values:
        row = len(PER_PARTITION) * self.pipeline.partitions
        if metric is not Metric.RECORD_ERROR_RATE:
            row = len(PER_PARTITION) * partition + PER_PARTITION.index(metric)
        values: Values = self.values[row]
        return values

    def within(self, occasion: Occasion, spare_ms: int = 0) -> NDArray[np.bool_]:
        """Return which samples have their whole step, and so much before it, in an occasion."""
        first = occasion.start_ms + STEP_MS + spare_ms
        return (self.times_ms >= first) & (self.times_ms < occasion.end_ms)

    def outside(self, occasion: Occasion, spare_ms: int = 0) -> NDArray[np.bool_]:
        """Return which samples have nothing of it, nor of so much behind it."""
        last = occasion.end_ms + STEP_MS + spare_ms
        return (self.times_ms < occasion.start_ms) | (self.times_ms >= last)


def pipeline(**traits: Any) -> Pipeline:
    return replace(PIPELINE, **traits)


def occasion(kind: Kind, minutes: float = 60, hour: float = 12, **traits: Any) -> Occasion:
    """Return something that happens on the first day, some odd milliseconds after an hour."""
    start = grid().start_ms + int(hour * 3_600_000) + 12_345
    end = start + int(minutes * 60_000)
    return Occasion(kind=kind, start_ms=start, end_ms=end, pipeline=0, **traits)


def grid(day: date = DAY) -> DayGrid:
    return day_grid(day, ZONE, STEP_MS)


def explanation(days: Days, metric: Metric, where: Sequence[bool] | NDArray[np.bool_]) -> float:
    return float(np.nanmean(days.of(metric)[np.asarray(where)]))
