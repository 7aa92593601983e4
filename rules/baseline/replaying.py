"""Replays days of some series as live evaluation would have judged them, each by the baselines of the day before.

Pure: the caller brings days in order, and after each the baselines that were learnt from it. So nothing of a day
can enter the verdict on it or on an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import METRICS, PROFILES, BaselineBlock, DayBlock
from rules.baseline.civil import CivilDay
from rules.baseline.judging import Judge, Memory, Opening
from rules.baseline.policy import BaselineSettings, policy_of
from rules.baseline.scores import Scores
from rules.baseline.windows import Marks

WARM_UP_DAYS: Final = (
    7  # replayed before the first day that counts: what was open then, opens no more
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOpening:
    """One unusual episode of a series; times are ms since 1970-01-01 UTC, values in the metric's unit."""

    series_id: int
    metric: str
    opened_ms: int
    closed_ms: int | None = None  # None: it was open at the end
    # Of the worst sample from the opening on.
    worst_ms: int
    score: float  # distance from what was expected, in usual deviations
    value: float
    expected: float
    least: float  # the usual range
    most: float
    profile: str  # a `blocks.Profile`
    days: int  # that were learnt from


@dataclass(slots=True)
class JudgedTotals:
    """How much of a metric was judged."""

    series: set[int] = field(default_factory=set)
    series_days: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _SeriesMemory:
    """The memory of one series at the end of a day."""

    end_ms: int
    step_ms: int
    residual: NDArray[np.float32]
    marks: Marks
    is_open: bool
    expected: np.float32


class Replay:
    """The replay of some series; `judge` each block of a day, then `learn` what the day became."""

    def __init__(self, settings: BaselineSettings, from_ms: int) -> None:
        """Only what opens at `from_ms` or later is an opening; it is the beginning of a civil day."""
        self.totals: dict[str, JudgedTotals] = {}
        self._settings, self._from_ms = settings, from_ms
        self._baselines: BaselineBlock | None = None
        self._memories: dict[int, _SeriesMemory] = {}
        self._open: dict[int, BacktestOpening] = {}
        self._ended: list[BacktestOpening] = []

    @property
    def openings(self) -> list[BacktestOpening]:
        """Return all openings by time and series."""
        return [opening for opening in self._every if opening.opened_ms >= self._from_ms]

    @property
    def earlier(self) -> list[BacktestOpening]:
        """Return the openings of the days before that lasted into the time that counts."""
        return [
            opening
            for opening in self._every
            if opening.opened_ms < self._from_ms
            and (opening.closed_ms is None or opening.closed_ms >= self._from_ms)
        ]

    @property
    def _every(self) -> list[BacktestOpening]:
        every = (*self._ended, *self._open.values())
        return sorted(every, key=lambda opening: (opening.opened_ms, opening.series_id))

    def learn(self, parts: Sequence[BaselineBlock]) -> None:
        """Take the baselines of all series after a day; the next day is judged by them."""
        self._baselines = None
        if parts:
            every = BaselineBlock.join(parts)
            self._baselines = every.take(np.argsort(every.series_id))

    def judge(self, day: DayBlock, calendar: CivilDay) -> None:
        """Judge a day of some series; those without a baseline of the day before are left out."""
        before = self._baselines
        if before is None or not len(before):
            return
        place = np.searchsorted(before.series_id, day.series_id).clip(max=len(before) - 1)
        rows = np.flatnonzero(before.series_id[place] == day.series_id)
        part, baselines = day.at(rows.tolist()), before.take(place[rows])
        if not len(part):
            return
        judge = Judge.of(baselines, calendar, part.step_ms, self._settings)
        memory = self._remember(part, calendar)
        after, openings, scores = judge.replay(memory, part)
        self._store(part, after, calendar)
        if calendar.start_ms >= self._from_ms:
            self._count(part, judge)
        self._note(_JudgedDay(part, calendar, judge, baselines, scores), openings)

    def _remember(self, day: DayBlock, calendar: CivilDay) -> Memory:
        memory = Memory.empty(len(day), day.step_ms)
        for row, series in enumerate(day.series_id.tolist()):
            last = self._memories.get(series)
            if last is None:
                continue
            memory.is_open[row] = last.is_open
            if last.end_ms == calendar.start_ms and last.step_ms == day.step_ms:
                memory.residual[row], memory.marks[row] = last.residual, last.marks
                memory.expected[row] = last.expected
        return memory

    def _store(self, day: DayBlock, after: Memory, calendar: CivilDay) -> None:
        for row, series in enumerate(day.series_id.tolist()):
            self._memories[series] = _SeriesMemory(
                calendar.end_ms,
                day.step_ms,
                after.residual[row].copy(),
                after.marks[row].copy(),
                bool(after.is_open[row]),
                after.expected[row],
            )

    def _count(self, day: DayBlock, judge: Judge) -> None:
        """Count the series that were measured and could have opened."""
        is_judged = np.isfinite(judge.above) & ~np.isnan(day.values).all(axis=1)
        for row in np.flatnonzero(is_judged).tolist():
            totals = self.totals.setdefault(METRICS[day.metric[row]].value, JudgedTotals())
            totals.series.add(int(day.series_id[row]))
            totals.series_days += 1

    def _note(self, judged: _JudgedDay, openings: Sequence[Opening]) -> None:
        rows = np.unique(np.array([opening.row for opening in openings], np.int64))
        worst = judged.take(rows)
        place_of = {int(row): place for place, row in enumerate(rows)}
        for opening in openings:
            self._continue(worst, place_of[opening.row], opening)

    def _continue(self, judged: _JudgedDay, row: int, opening: Opening) -> None:
        series = int(judged.day.series_id[row])
        current = judged.worst(row, opening)
        if opening.opened is None:
            before = self._open.pop(series, None)
            if before is None:
                return
            is_worse = current is not None and current.score > before.score
            current = replace(current or before, opened_ms=before.opened_ms) if is_worse else before
        if current is None:
            return
        if opening.closed is None:
            self._open[series] = current
        else:
            self._ended.append(replace(current, closed_ms=judged.at_ms(opening.closed)))


@dataclass(frozen=True, slots=True, eq=False)
class _JudgedDay:
    """What is known of a judged day of some series."""

    day: DayBlock
    calendar: CivilDay
    judge: Judge
    baselines: BaselineBlock
    scores: Scores

    def take(self, rows: NDArray[np.int64]) -> _JudgedDay:
        """Return some of the series: what is expected of every sample is drawn for few of them."""
        scores = self.scores
        return _JudgedDay(
            self.day.at(rows.tolist()),
            self.calendar,
            self.judge.take(rows),
            self.baselines.take(rows),
            Scores(scores.residual[rows], scores.seasonal[rows], scores.score[rows]),
        )

    def at_ms(self, sample: int) -> int:
        return self.calendar.start_ms + sample * self.day.step_ms

    def worst(self, row: int, opening: Opening) -> BacktestOpening | None:
        """Return an opening with its worst sample of the day; None if none is known."""
        first = opening.opened or 0
        end = self.day.values.shape[1] if opening.closed is None else opening.closed + 1
        seasonal = self.scores.seasonal[row, first:end]
        if np.isnan(seasonal).all():
            return None
        sample = first + int(np.nanargmax(seasonal))
        expected = self.judge.take(np.array([row])).expected_at(sample)
        metric = METRICS[self.day.metric[row]].value
        cut = policy_of(metric).cut
        edges = (float(side[0, 0]) for side in (expected.mid, expected.lower, expected.upper))
        mid, least, most = (cut(edge) or 0.0 for edge in edges)
        return BacktestOpening(
            series_id=int(self.day.series_id[row]),
            metric=metric,
            opened_ms=self.at_ms(first),
            worst_ms=self.at_ms(sample),
            score=float(self.scores.seasonal[row, sample]),
            value=float(self.day.values[row, sample]),
            expected=mid,
            least=least,
            most=most,
            profile=PROFILES[self.baselines.profile[row]].value,
            days=int(self.baselines.days[row]),
        )
