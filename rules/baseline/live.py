"""Live evaluation: one sample of all series after another, with the result that a replayed day has.

A round of 100,000 series writes one row of each ring, and computes windows only for series that are unusual
now or have something open: they are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.judging import FAR, UNUSUAL, Bools, Judge, Marks, Memory
from rules.baseline.scores import Scores, score_sample


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

    @property
    def nbytes(self) -> int:
        """How many bytes are held between two samples, the judge's included."""
        rings = self._residual.nbytes + self._marks.nbytes + self._is_open.nbytes
        return rings + self._judge.nbytes

    @property
    def memory(self) -> Memory:
        """A copy of what is remembered: for a checkpoint."""
        return Memory(
            residual=np.ascontiguousarray(np.roll(self._residual, -self._next, axis=0).T),
            marks=np.ascontiguousarray(np.roll(self._marks, -self._next, axis=0).T),
            is_open=self._is_open.copy(),
        )

    def follow(self, judge: Judge) -> None:
        """Judge the same series by another judge from the next sample on: a new day, or a new run."""
        if len(judge.threshold) != len(self._is_open) or judge.step_ms != self._judge.step_ms:
            raise ValueError("the judge is of other series, or of another step")
        self._judge = judge

    def judge(self, sample: int, values: Float32s) -> Verdict:
        """Judge the sample of that number of the judge's day, one value per series; NaN: not measured."""
        judge = self._judge
        expected = judge.expected_at(sample)
        scores = score_sample(
            values[:, None] - expected.mid,
            expected,
            judge.policies,
            ring=self._residual,
            novelty_from=judge.novelty_from,
        )
        self._residual[self._next] = scores.residual[:, 0]
        self._marks[self._next] = judge.mark(scores)[:, 0]
        opened, closed = self._changes(self._marks[self._next])
        self._next = (self._next + 1) % len(self._residual)
        self._is_open ^= opened | closed
        return Verdict(scores=scores, opened=opened, closed=closed)

    def _changes(self, now: Marks) -> tuple[Bools, Bools]:
        """Return which series open and which close, by the marks of now and of the hour."""
        opened, closed = np.zeros_like(self._is_open), np.zeros_like(self._is_open)
        rows = np.flatnonzero(self._is_open | ((now & (UNUSUAL | FAR)) > 0))
        if len(rows):
            hour = np.roll(self._marks[:, rows], -1 - self._next, axis=0)  # the newest last
            changes = self._judge.changes(hour[-1][:, None], partial(_count_last, hour), rows)
            opens, closes = (mask[:, 0] for mask in changes)
            was_open = self._is_open[rows]
            opened[rows], closed[rows] = opens & ~was_open, closes & was_open
        return opened, closed


def _count_last(hour: Marks, mark: np.uint8, width: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return how many of the last `width` samples carry a mark: (n, 1), of (samples, n)."""
    carried = (hour & mark) > 0
    counts = np.empty((len(width), 1), np.int32)
    for cells in np.unique(width).tolist():  # as many as there are policies, at most
        has_width = width == cells
        counts[has_width, 0] = carried[-cells:, has_width].sum(axis=0, dtype=np.int32)
    return counts
