"""Live scoring of rounds: puts them on the grid of the day, and judges each of its steps once it is over.

A step is over when a round of a later one comes, because of several samples in a step the last counts. Steps
without a round are judged as not measured. So the openings are those of a replay of the day's history.
What is not known is UNKNOWN with its reason; a series that is open stays open through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import BaselineBlock, Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.grid import Int64s, history_ms, whole_step
from rules.baseline.judging import Judge, Memory
from rules.baseline.learnt_series import LearntSeries, may_open
from rules.baseline.live import LiveEvaluation, Verdict
from rules.baseline.policy import BaselineSettings
from rules.baseline.scores import HOUR_MS
from rules.baseline.windows import Bools


class UnknownReason(StrEnum):
    """Why nothing is known of a series in a step; the order of `UNKNOWN_REASONS` decides."""

    NONE = "none"  # it is known
    NO_BAND = "no_band"  # the run has no band by which the series may open: young, sparse, vanished
    NOT_MEASURED = "not_measured"
    NOT_LEARNT = "not_learnt"  # the band knows nothing of this half hour
    SHORT_HISTORY = "short_history"  # far out, with less than half of an hour known before it


UNKNOWN_REASONS: Final = tuple(UnknownReason)
# What is open and still far out needs no hour before it.
KNOWN: Final = tuple(
    UNKNOWN_REASONS.index(reason) for reason in (UnknownReason.NONE, UnknownReason.SHORT_HISTORY)
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayJudge:
    """The judge of a civil day by one run, and which series it judges."""

    series_id: Int64s  # (n,), ascending
    has_band: Bools  # (n,) whether it may open
    judge: Judge
    learnt: LearntSeries | None = None  # of the same rows, for who names them

    @classmethod
    def of(
        cls,
        baselines: BaselineBlock,
        calendar: CivilDay,
        interval_ms: int,
        settings: BaselineSettings,
    ) -> DayJudge:
        """Prepare to judge the rounds of a day, polled at an interval."""
        ordered = baselines.take(np.argsort(baselines.series_id, kind="stable"))
        return cls(
            series_id=ordered.series_id,
            has_band=may_open(ordered),
            judge=Judge.of(ordered, calendar, whole_step(interval_ms), settings),
        )

    @classmethod
    def join(cls, parts: Sequence[DayJudge], learnt: LearntSeries) -> DayJudge:
        """Return one judge of all parts' series, whose ids ascend from part to part; at least one part."""
        return cls(
            series_id=np.concatenate([part.series_id for part in parts]),
            has_band=np.concatenate([part.has_band for part in parts]),
            judge=Judge.join([part.judge for part in parts]),
            learnt=learnt,
        )

    def find(self, ids: Int64s) -> tuple[Int64s, Bools]:
        """Return the row of each id, and whether it has one."""
        if not len(self.series_id):
            return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
        rows = np.searchsorted(self.series_id, ids).clip(max=len(self.series_id) - 1)
        return rows, self.series_id[rows] == ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesMemory:
    """What is remembered of series between two steps: for a restart, and for another run."""

    series_id: Int64s  # (n,)
    memory: Memory
    without_baseline: Int64s  # ids that are open and not in the run
    next_ms: int  # when the first step begins that is not judged yet, ms since 1970-01-01 UTC

    def of_series(self, day: DayJudge) -> SeriesMemory:
        """Return the memory of the series of a judge; new ones have an empty hour."""
        before, was_open = self.memory, self.series_id[self.memory.is_open]
        width = before.residual.shape[1]
        after = Memory.empty(len(day.series_id), HOUR_MS // width)
        rows, has_row = day.find(self.series_id)
        into = rows[has_row]
        for name in ("residual", "marks", "is_open", "expected"):
            getattr(after, name)[into] = getattr(before, name)[has_row]
        opened = np.union1d(was_open, self.without_baseline)
        rows, has_row = day.find(opened)
        after.is_open[rows[has_row]] = True
        return replace(
            self, series_id=day.series_id, memory=after, without_baseline=opened[~has_row]
        )

    @property
    def open_ids(self) -> Int64s:
        """Return the ids of what is open, ascending."""
        return np.union1d(self.series_id[self.memory.is_open], self.without_baseline)

    def only_open(self) -> SeriesMemory:
        """Return what is open, without its hour."""
        none = self.series_id[:0]
        hour = HOUR_MS // self.memory.residual.shape[1]
        empty = Memory.empty(0, hour)
        return replace(self, series_id=none, memory=empty, without_baseline=self.open_ids)

    def reopened(self, ids: Int64s) -> SeriesMemory:
        """Return the memory with these series open too: what a restart knows later than the first rounds."""
        return replace(self, without_baseline=np.union1d(self.without_baseline, ids))

    def silent(self, step_ms: int) -> SeriesMemory:
        """Return the memory after an hour without a judgement: what is open stays open."""
        empty = Memory.empty(len(self.series_id), step_ms)
        return replace(self, memory=replace(empty, is_open=self.memory.is_open))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepVerdict:
    """The judgement of one step of the day; all columns have one row per series of the judge."""

    start_ms: int  # when the step began, ms since 1970-01-01 UTC
    day: DayJudge
    values: Float32s  # NaN: not measured
    verdict: Verdict
    is_open: Bools  # after this step
    unknown: NDArray[np.uint8]  # places in `UNKNOWN_REASONS`; 0: known
    without_baseline: Int64s  # ids that are open and not in the run: UNKNOWN

    def is_known(self, rows: Int64s) -> Bools:
        """Mark the rows of open series of which it is known whether they are still far out."""
        known: Bools = np.isin(self.unknown[rows], KNOWN)
        return known


class LiveSeries:
    """Judges the rounds of one cluster by the baselines in force; one caller at a time."""

    def __init__(
        self,
        judge_at: Callable[[int], DayJudge | None],
        *,
        interval_ms: int,
        memory: SeriesMemory | None = None,
    ) -> None:
        """Go on from a memory; without one nothing opens for half an hour.

        `judge_at` returns the judge of the civil day in which a time lies (ms since 1970-01-01 UTC), the same
        object until another run is in force; None: no baselines are known, and nothing is judged. After midnight
        it is asked once more for yesterday, whose last step is over then.
        """
        self._judge_at = judge_at
        self._interval_ms = interval_ms
        self._step_ms = whole_step(interval_ms)
        if memory is not None and memory.memory.residual.shape[1] != HOUR_MS // self._step_ms:
            memory = memory.silent(self._step_ms)  # of another interval
        begin_ms = None if memory is None else memory.next_ms // self._step_ms * self._step_ms
        self._start_ms = begin_ms  # of the step that is being filled
        self._rounds: list[tuple[Int64s, Float32s]] = []  # of that step, in order
        self._memory = memory  # of the time when there is no judge
        self._day: DayJudge | None = None
        self._live: LiveEvaluation | None = None
        self._without_baseline: Int64s = np.zeros(0, np.int64)

    @property
    def memory(self) -> SeriesMemory | None:
        """A copy of what is remembered, without the step being filled; None: nothing was ever judged."""
        if self._live is None or self._day is None or self._start_ms is None:
            if self._memory is None or self._start_ms is None:
                return self._memory
            return replace(self._memory, next_ms=self._start_ms)  # nothing was judged meanwhile
        return SeriesMemory(
            series_id=self._day.series_id,
            memory=self._live.memory,
            without_baseline=self._without_baseline,
            next_ms=self._start_ms,
        )

    def memory_of_open(self, most: int) -> SeriesMemory | None:
        """Return what is remembered of the open series, for a checkpoint; the hour of `most` of them."""
        if self._live is None or self._day is None or self._start_ms is None:
            memory = self.memory
            return None if memory is None else memory.only_open()
        rows = np.flatnonzero(self._live.is_open)
        ids = self._day.series_id[rows]
        return SeriesMemory(
            series_id=ids[:most],
            memory=self._live.memory_of(rows[:most]),
            without_baseline=np.union1d(self._without_baseline, ids[most:]),
            next_ms=self._start_ms,
        )

    def forget(self, ids: Int64s) -> None:
        """End series without a judgement: what they measured does not exist any more, or cannot be judged again."""
        self._without_baseline = np.setdiff1d(self._without_baseline, ids)
        if self._live is not None and self._day is not None:
            rows, has_row = self._day.find(ids)
            self._live.forget(rows[has_row])
        elif self._memory is not None:
            memory = self._memory
            is_open = memory.memory.is_open & ~np.isin(memory.series_id, ids)
            self._memory = replace(
                memory,
                memory=replace(memory.memory, is_open=is_open),
                without_baseline=np.setdiff1d(memory.without_baseline, ids),
            )

    def put(self, at_ms: int, ids: Int64s, values: NDArray[np.floating]) -> list[StepVerdict]:
        """Take a round that began at `at_ms`; return the judgements of the steps that are over.

        Rounds of a step that is over already are left out: the clock was set back. If it was set back by more than
        an hour, as after a clock that had been far ahead, the hour begins anew, and what is open stays open.
        """
        start_ms = history_ms(at_ms, self._interval_ms) // self._step_ms * self._step_ms
        verdicts: list[StepVerdict] = []
        if self._start_ms is not None:
            if start_ms < self._start_ms - HOUR_MS:
                self._forget_hour()
                self._rounds, self._start_ms = [], start_ms
            if start_ms < self._start_ms:
                return []
            verdicts = self._judge_until(self._start_ms, start_ms)
        self._start_ms = start_ms
        self._rounds.append((ids, values.astype(np.float32)))
        return verdicts

    def _judge_until(self, begin_ms: int, end_ms: int) -> list[StepVerdict]:
        """Judge the steps from one to another; after an hour without a round nothing changes any more."""
        last_ms = min(end_ms, begin_ms + self._step_ms + HOUR_MS)
        verdicts = []
        for start_ms in range(begin_ms, last_ms, self._step_ms):
            verdict = self._judge_step(start_ms)
            self._rounds = []
            if verdict is not None:
                verdicts.append(verdict)
        if last_ms < end_ms:
            self._forget_hour()
        return verdicts

    def _judge_step(self, start_ms: int) -> StepVerdict | None:
        day = self._judge_at(start_ms)
        if day is None:
            self._forget_hour()
            return None
        calendar = day.judge.calendar
        if (
            day.judge.step_ms != self._step_ms
            or not calendar.start_ms <= start_ms < calendar.end_ms
        ):
            raise ValueError("the judge is of another day, or of another step")
        live = self._follow(day)
        values = self._values(day)
        sample = (start_ms - calendar.start_ms) // self._step_ms
        verdict = live.judge(sample, values)
        return StepVerdict(
            start_ms=start_ms,
            day=day,
            values=values,
            verdict=verdict,
            is_open=live.is_open,
            unknown=_unknown(day, values, verdict),
            without_baseline=self._without_baseline,
        )

    def _follow(self, day: DayJudge) -> LiveEvaluation:
        """Return the evaluation by this judge: over midnight and runs each series keeps its hour."""
        if self._live is not None and self._day is day:
            return self._live
        before = self.memory
        memory = Memory.empty(len(day.series_id), self._step_ms)
        if before is not None:
            mine = before.of_series(day)
            memory, self._without_baseline = mine.memory, mine.without_baseline
        self._day, self._live, self._memory = day, LiveEvaluation(day.judge, memory), None
        return self._live

    def _values(self, day: DayJudge) -> Float32s:
        """Return the last measured sample of the step, by series of the judge."""
        values = np.full(len(day.series_id), np.nan, np.float32)
        for ids, of_round in self._rounds:
            rows, has_row = day.find(ids)
            is_taken = has_row & ~np.isnan(of_round)
            values[rows[is_taken]] = of_round[is_taken]
        return values

    def _forget_hour(self) -> None:
        """Forget the hour and the judge, not what is open."""
        memory = self.memory
        self._memory = None if memory is None else memory.silent(self._step_ms)
        self._day = self._live = None


def _unknown(day: DayJudge, values: Float32s, verdict: Verdict) -> NDArray[np.uint8]:
    scores = verdict.scores
    cases = (
        (UnknownReason.NO_BAND, ~day.has_band),
        (UnknownReason.NOT_MEASURED, np.isnan(values)),
        (UnknownReason.NOT_LEARNT, np.isnan(scores.seasonal[:, 0])),
        (UnknownReason.SHORT_HISTORY, np.isnan(scores.score[:, 0])),
    )
    codes = [np.uint8(UNKNOWN_REASONS.index(reason)) for reason, _ in cases]
    return np.select([mask for _, mask in cases], codes, np.uint8(0))
