"""Weeks of a simulated cluster: the same seed, the same weeks, sample for sample.

Days are made one after the other, each in blocks of some pipelines, so that memory depends on the
number of series and not on that of days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import METRIC_CODES
from rules.baseline.series import Metric, Series
from service.sandbox.simulator.block import Block
from service.sandbox.simulator.defaults import CLUSTER, SERIES, WEEKS, ZONES
from service.sandbox.simulator.drawing import draw_occasions, draw_outages
from service.sandbox.simulator.fleet import OF_RATES, Pipeline, draw_fleet
from service.sandbox.simulator.grid import DayGrid, clock_changes, day_grid
from service.sandbox.simulator.hard_cases import draw_hard_cases
from service.sandbox.simulator.occasions import SHOWS_IN, Occasion

BLOCK_PIPELINES: Final = 24
ENDED_TRANSACTIONS: Final = 200  # per sample
ABORTED_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """What is to be simulated."""

    seed: int
    cluster: str = CLUSTER
    series: int = SERIES
    weeks: int = WEEKS
    end: date  # the last day
    step_seconds: int = 30  # one of `defaults.STEPS`
    zones: tuple[str, ...] = ZONES  # IANA; days are those of the first one, where most live
    has_hard_cases: bool = False  # those of `hard_cases` happen as well

    @property
    def days(self) -> list[date]:
        """Return all days, in order."""
        return [self.end - timedelta(days=back) for back in reversed(range(7 * self.weeks))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """The samples of some series over one civil day."""

    series_id: NDArray[np.int64]
    metric: NDArray[np.uint8]  # places in `rules.baseline.blocks.METRICS`
    grid: DayGrid
    values: NDArray[np.float32]  # a row per series; NaN: not measured


class Simulation:
    """A cluster and all that happens to it; `days` may be called once."""

    def __init__(self, request: SimulationRequest) -> None:
        """Draw the cluster and its weeks; nothing is simulated yet."""
        self.request = request
        self.pipelines: Sequence[Pipeline] = draw_fleet(request.seed, request.series, request.zones)
        self.outages = draw_outages(request.seed, request.days, request.zones[0])
        drawn = [
            draw_occasions(request.seed, pipeline, request.days) for pipeline in self.pipelines
        ]
        if request.has_hard_cases:
            for pipeline, group in zip(self.pipelines, drawn, strict=True):
                group.extend(draw_hard_cases(request.seed, pipeline, request.days, group))
                group.sort(key=lambda occasion: (occasion.start_ms, occasion.kind))
        self.occasions: list[Occasion] = [occasion for group in drawn for occasion in group]
        self._blocks = [
            Block(
                [request.seed, 4, first],
                self.pipelines[first : first + BLOCK_PIPELINES],
                [
                    occasion
                    for group in drawn[first : first + BLOCK_PIPELINES]
                    for occasion in group
                ],
            )
            for first in range(0, len(self.pipelines), BLOCK_PIPELINES)
        ]
        self.series: list[Series] = [
            Series(cluster=request.cluster, metric=Metric.ABORT_RATIO),
            *(series for pipeline in self.pipelines for series in pipeline.series(request.cluster)),
        ]
        del self.series[request.series :]
        self._ids = np.array([series.series_id for series in self.series], np.int64)
        self._metrics = np.array([METRIC_CODES[series.metric] for series in self.series], np.uint8)
        rates = [series.metric in OF_RATES for series in self.series]
        self._is_rate = np.array(rates, np.bool_)

    @property
    def over_ms(self) -> dict[Occasion, int]:
        """Return when each incident's backlog had been read, as far as days were made."""
        return {occasion: at for block in self._blocks for occasion, at in block.over_ms.items()}

    def is_visible(self, occasion: Occasion) -> bool:
        """Whether there is a series that shows it: the last pipeline may have been cut off."""
        if occasion.pipeline is None:
            return True
        topic, metrics = self.pipelines[occasion.pipeline].topic, SHOWS_IN[occasion.kind]
        return any(
            series.topic == topic
            and series.metric in metrics
            and (series.partition is None or occasion.partition in (None, series.partition))
            for series in self.series
        )

    def clock_changes(self) -> list[tuple[str, int]]:
        """Return zones and when their clocks are changed, in ms since 1970-01-01 UTC."""
        days = self.request.days
        start, end = self._grid(days[0]).start_ms, self._grid(days[-1]).end_ms
        return [(zone, at) for zone in self.request.zones for at in clock_changes(start, end, zone)]

    def days(self) -> Iterator[tuple[date, list[Samples]]]:
        """Yield the samples of all series, a day at a time, in the days' order."""
        for day in self.request.days:
            yield day, list(self._day(self._grid(day)))

    def _grid(self, day: date) -> DayGrid:
        return day_grid(day, self.request.zones[0], self.request.step_seconds * 1000)

    def _day(self, grid: DayGrid) -> Iterator[Samples]:
        first = 0
        for values in [
            _aborts(self.request.seed, grid),
            *(block.day(grid) for block in self._blocks),
        ]:
            rows = slice(first, min(first + len(values), len(self.series)))
            first = rows.stop
            visible = values[: rows.stop - rows.start]
            self._hide(visible, self._is_rate[rows], grid)
            yield Samples(
                series_id=self._ids[rows], metric=self._metrics[rows], grid=grid, values=visible
            )

    def _hide(self, values: NDArray[np.float32], is_rate: NDArray[np.bool_], grid: DayGrid) -> None:
        """Take out, in place, what was not seen; a rate needs the sample before as well."""
        for outage in self.outages:
            values[:, grid.taken(outage.start_ms, outage.end_ms)] = np.nan
            values[is_rate, grid.taken(outage.start_ms, outage.end_ms + grid.step_ms)] = np.nan


def _aborts(seed: int, grid: DayGrid) -> NDArray[np.float32]:
    rng = np.random.default_rng([seed, 5, grid.day.toordinal()])
    aborted = rng.binomial(ENDED_TRANSACTIONS, ABORTED_SHARE, (1, grid.count))
    ratio: NDArray[np.float32] = (aborted / ENDED_TRANSACTIONS).astype(np.float32)
    return ratio
