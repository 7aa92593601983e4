"""Live evaluation: one sample of all series after another, with the result that a replayed day has.

A round of 100,000 series writes one row of each ring, and computes windows only for series that are unusual
now or have something open: they are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.judging import OPENING, Judge, Memory
from rules.baseline.scores import Scores, score_sample
from rules.baseline.windows import Bools, HourWindows, Marks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """The judgement of one sample of n series: (n,), of the scores (n, 1)."""

    scores: Scores
    opened: Bools
    closed: Bools


class LiveEvaluation:
    """Judges sample after sample of n series; holds an hour of them in rings that are written in place."""

    def __init__(self, judge: Judge, memory: Memory) -> None:
        """Go on from a memory: that of a checkpoint, of a replay, or an empty one."""
        self._judge = judge
        self._residual = np.ascontiguousarray(memory.residual.T)  # (samples of an hour, n)
        self._marks = np.ascontiguousarray(memory.marks.T)
        self._is_open = memory.is_open.copy()
        self._next = 0  # the place of the oldest sample, which the next one replaces
        self._expected = memory.expected  # of the next sample, until it is judged
        self._last: int | None = None  # the last sample that was judged by this judge

    @property
    def nbytes(self) -> int:
        """How many bytes are held between two samples, the judge's included."""
        rings = self._residual.nbytes + self._marks.nbytes + self._is_open.nbytes
        return rings + self._judge.nbytes

    @property
    def is_open(self) -> Bools:
        """A copy of which series are open, (n,)."""
        return self._is_open.copy()

    @property
    def memory(self) -> Memory:
        """A copy of what is remembered: for a checkpoint."""
        return Memory(
            residual=np.ascontiguousarray(np.roll(self._residual, -self._next, axis=0).T),
            marks=np.ascontiguousarray(np.roll(self._marks, -self._next, axis=0).T),
            is_open=self._is_open.copy(),
            expected=self._expected_next(),
        )

    def follow(self, judge: Judge) -> None:
        """Judge the same series by another judge from the next sample on: a new day, or a new run."""
        if len(judge.above) != len(self._is_open) or judge.step_ms != self._judge.step_ms:
            raise ValueError("the judge is of other series, or of another step")
        self._expected = self._expected_next()
        self._judge, self._last = judge, None

    def memory_of(self, rows: NDArray[np.int64]) -> Memory:
        """Return a copy of what is remembered of some of the series."""
        return Memory(
            residual=np.roll(self._residual[:, rows], -self._next, axis=0).T,
            marks=np.roll(self._marks[:, rows], -self._next, axis=0).T,
            is_open=self._is_open[rows],
            expected=self._expected_next()[rows],
        )

    def forget(self, rows: NDArray[np.int64]) -> None:
        """End what is open of these series, and forget their hour: it must not open them again."""
        self._is_open[rows] = False
        self._residual[:, rows] = np.nan
        self._marks[:, rows] = 0

    def _expected_next(self) -> Float32s:
        return self._expected if self._last is None else self._judge.mid_at(self._last + 1)

    def judge(self, sample: int, values: Float32s) -> Verdict:
        """Judge the sample of that number of the judge's day, one value per series; NaN: not measured."""
        judge = self._judge
        expected = judge.expected_at(sample)
        if self._last is None:
            self._residual += (self._expected - expected.mid[:, 0])[None]
        self._last = sample
        scores = score_sample(
            values[:, None] - expected.mid,
            expected,
            judge.policies,
            ring=self._residual,
            novelty_from=judge.novelty_from,
        )
        self._residual[self._next] = scores.residual[:, 0]
        self._marks[self._next] = judge.mark(scores, expected.mid)[:, 0]
        opened, closed = self._changes(self._marks[self._next])
        self._next = (self._next + 1) % len(self._residual)
        self._is_open ^= opened | closed
        return Verdict(scores=scores, opened=opened, closed=closed)

    def _changes(self, now: Marks) -> tuple[Bools, Bools]:
        """Return which series open and which close, by the marks of now and of the hour."""
        opened, closed = np.zeros_like(self._is_open), np.zeros_like(self._is_open)
        rows = np.flatnonzero(self._is_open | ((now & OPENING) > 0))
        if len(rows):
            newest_last = -1 - self._next
            hour = np.roll(self._marks[:, rows], newest_last, axis=0)
            residual = np.roll(self._residual[:, rows], newest_last, axis=0)
            changes = self._judge.changes(HourWindows(hour, residual), rows)
            opens, closes = (mask[:, 0] for mask in changes)
            was_open = self._is_open[rows]
            opened[rows], closed[rows] = opens & ~was_open, closes & was_open
        return opened, closed
