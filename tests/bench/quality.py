"""Judges the method by simulated weeks: what it finds, by class, and what it tells for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import numpy as np

from rules.baseline.blocks import BaselineBlock, DayBlock
from rules.baseline.civil import civil_day
from rules.baseline.daily_step import advance
from rules.baseline.judging import Judge, Memory
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Metric, Series
from rules.baseline.state import StateBlock
from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.grid import DAY_MS, HOUR_MS
from service.sandbox.simulator.occasions import SHOWS_IN, Kind, Occasion
from service.sandbox.simulator.simulation import Samples, Simulation

MINUTE_MS: Final = 60_000
AFTER_MS: Final = 10 * MINUTE_MS  # an opening so long after something is still of it
BACK_MS: Final = 75 * MINUTE_MS  # after an outage: until an hour is known again
SHIFT_MS: Final = 2 * DAY_MS  # a new level is learnt in two nights
GROUP_MS: Final = (
    30 * MINUTE_MS
)  # openings of a pipeline so near to each other are one notification

CLOCKS: Final = "clocks are changed"


@dataclass(frozen=True, slots=True)
class Told:
    """That a series was told to be unusual."""

    series: Series
    at_ms: int
    until_ms: int  # when it was over; the end of the weeks, where it never was

    @property
    def hours(self) -> float:
        return (self.until_ms - self.at_ms) / HOUR_MS


@dataclass(frozen=True, slots=True)
class Found:
    """One occasion and what was told in it."""

    occasion: Occasion
    reported: Sequence[Told]  # that opened in it
    was_open: bool  # nothing opened, because something was open all the time

    @property
    def delay_minutes(self) -> float:
        return (min(one.at_ms for one in self.reported) - self.occasion.start_ms) / MINUTE_MS


def replayed(simulation: Simulation, settings: BaselineSettings) -> Iterator[Told]:
    """Give all openings, each day judged by the night before it."""
    states = StateBlock.new(len(simulation.series))
    baselines: BaselineBlock | None = None
    memory = Memory.empty(len(simulation.series), simulation.request.step_seconds * 1000)
    begun: dict[int, int] = {}
    end_ms = 0
    for day, samples in simulation.days():
        calendar = civil_day(day, simulation.request.zones[0])
        block, end_ms = _block(samples), calendar.end_ms
        if baselines is not None:
            judge = Judge.of(baselines, calendar, block.step_ms, settings)
            memory, openings, _ = judge.replay(memory, block)
            for one in openings:
                if one.opened is not None:
                    begun[one.row] = calendar.start_ms + one.opened * block.step_ms
                if one.closed is not None:
                    until = calendar.start_ms + one.closed * block.step_ms
                    yield Told(simulation.series[one.row], begun.pop(one.row), until)
        states, baselines = advance(states, block, calendar, settings)
    for row, at in begun.items():
        yield Told(simulation.series[row], at, end_ms)


def _block(samples: Sequence[Samples]) -> DayBlock:
    return DayBlock(
        series_id=np.concatenate([one.series_id for one in samples]),
        metric=np.concatenate([one.metric for one in samples]),
        step_ms=samples[0].grid.step_ms,
        values=np.concatenate([one.values for one in samples]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """What was right and what was not; counts of several weeks may be added."""

    incidents: int
    found: int  # incidents with an opening
    openings: int  # in an incident; those of one series in one incident count once
    false: int
    false_groups: int  # the same, of a pipeline within half an hour

    def __add__(self, other: EventCounts) -> EventCounts:
        return EventCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__slots__}
        )

    @property
    def recall(self) -> float:
        return self.found / max(self.incidents, 1)

    @property
    def precision(self) -> float:
        return self.openings / max(self.openings + self.false, 1)

    @property
    def grouped_precision(self) -> float:
        return self.found / max(self.found + self.false_groups, 1)


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / max(precision + recall, 1e-9)


class Verdicts:
    """Holds what was told after the first weeks against what was drawn."""

    def __init__(self, simulation: Simulation, told: Sequence[Told], from_ms: int) -> None:
        self.simulation = simulation
        self.reported = [one for one in told if one.at_ms >= from_ms]
        self._over = simulation.over_ms
        self._by_topic: dict[str | None, list[Told]] = defaultdict(list)
        for one in self.reported:
            self._by_topic[one.series.topic].append(one)
        pipelines = {one.index: one for one in simulation.pipelines}
        # The last pipeline may be cut off: its topic's own series is the last of each.
        whole = {one.topic for one in simulation.series if one.metric is Metric.RECORD_ERROR_RATE}
        self._zones = {one.topic: one.zone for one in simulation.pipelines}
        self._changes = simulation.clock_changes()
        self.false = {one: self._why(one) for one in self.reported if not self._is_true(one)}
        self.found = [
            self._found(one, pipelines[one.pipeline].topic)
            for one in simulation.occasions
            if one.pipeline is not None
            and one.start_ms >= from_ms
            and pipelines[one.pipeline].topic in whole
        ]

    def of(self, kind: Kind) -> list[Found]:
        return [one for one in self.found if one.occasion.kind is kind]

    def counts(self) -> EventCounts:
        """Return what precision and recall are made of, by series and by pipeline."""
        incidents = [one for one in self.found if one.occasion.is_incident]
        firsts = {
            (one.series, self._incident_of(one)) for one in self.reported if one not in self.false
        }
        return EventCounts(
            incidents=len(incidents),
            found=sum(bool(one.reported) for one in incidents),
            openings=len(firsts),
            false=len(self.false),
            false_groups=self.false_groups(),
        )

    def _incident_of(self, told: Told) -> Occasion:
        return next(
            one
            for one in self.simulation.occasions
            if one.is_incident and self._is_of(one, told) and self._covers(one, told)
        )

    def false_groups(self) -> int:
        """Return how many notifications the false ones are, if those of a pipeline are grouped."""
        times: dict[str | None, list[int]] = defaultdict(list)
        for one in self.false:
            times[one.series.topic].append(one.at_ms)
        return sum(
            1 + sum(late - early > GROUP_MS for early, late in pairwise(sorted(found)))
            for found in times.values()
        )

    def false_by_metric(self) -> Counter[Metric]:
        return Counter(one.series.metric for one in self.false)

    def _found(self, occasion: Occasion, topic: str) -> Found:
        first, last = self._window(occasion)
        metrics = SHOWS_IN[occasion.kind]
        shows = [
            one
            for one in self._by_topic[topic]
            if one.series.metric in metrics and (occasion.is_incident or one in self.false)
        ]
        told = [one for one in shows if first <= one.at_ms < last]
        was_open = not told and any(one.at_ms < first and one.until_ms > first for one in shows)
        return Found(occasion, told, was_open)

    def _window(self, occasion: Occasion) -> tuple[int, int]:
        over = self._over.get(occasion, occasion.end_ms)
        last = SHIFT_MS if occasion.kind is Kind.LEVEL_SHIFT else AFTER_MS
        return occasion.start_ms, max(over, occasion.end_ms) + last

    def _is_true(self, told: Told) -> bool:
        """Whether something is told of a pipeline that has an incident."""
        return any(
            one.is_incident and self._covers(one, told)
            for one in self.simulation.occasions
            if self._is_of(one, told)
        )

    def _is_of(self, occasion: Occasion, told: Told) -> bool:
        if occasion.pipeline is None:
            return True
        return self.simulation.pipelines[occasion.pipeline].topic == told.series.topic

    def _covers(self, occasion: Occasion, told: Told) -> bool:
        first, last = self._window(occasion)
        return first <= told.at_ms < last

    def _why(self, told: Told) -> str:
        """Return what ordinary thing was told, or else when."""
        for one in self.simulation.occasions:
            if self._is_of(one, told) and self._covers(one, told):
                return one.kind.value
        for one in self.simulation.outages:
            if one.start_ms <= told.at_ms < one.end_ms + BACK_MS:
                return one.kind.value
        zones = (self.simulation.request.zones[0], self._zones.get(told.series.topic or "", ""))
        for zone, at in self._changes:
            if zone in zones and abs(told.at_ms - at) < DAY_MS:
                return CLOCKS
        for before in self.simulation.occasions:
            last = self._window(before)[1]
            if before.is_incident and self._is_of(before, told) and 0 <= told.at_ms - last < DAY_MS:
                return "the day after an incident"
        return "other zone" if zones[1] not in ("", zones[0]) else "nothing"


def shown(told: Told, pipelines: Sequence[Pipeline]) -> str:
    """Return an opening as a line: when, what, and whose."""
    kinds = {one.topic: one.traffic.value for one in pipelines}
    at = datetime.fromtimestamp(told.at_ms / 1000, UTC)
    place = f"{told.series.topic}-{told.series.partition}"
    traffic = kinds.get(told.series.topic or "", "cluster")
    return (
        f"{at:%a %Y-%m-%d %H:%M} UTC for {told.hours:5.1f} h  {told.series.metric.value:<30} "
        f"{place:<16} {traffic}"
    )
