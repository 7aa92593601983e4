"""Live evaluation of samples against a baseline, and the same over a whole day at once.

The result depends on windows alone: no more than the last hour of residuals, half an hour of marks and
whether an episode is open. So a replayed day gives the same result as the live evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import (
    OUTCOMES,
    REASONS,
    BaselineBlock,
    DayBlock,
    Float32s,
    Outcome,
    Reason,
)
from rules.baseline.civil import CivilDay
from rules.baseline.policy import BaselineSettings
from rules.baseline.scales import Policies
from rules.baseline.scores import HOUR_MS, Expected, Faces, Scores, score_residuals

CLOSE_SECONDS: Final = 600  # so long it must be calm
CLOSE_SHARE: Final = 0.6  # of the threshold: below it is calm
_JUDGED: Final = tuple(OUTCOMES.index(outcome) for outcome in (Outcome.BANDED, Outcome.NO_DATA))
_FIRST_WEEKS: Final = REASONS.index(Reason.FIRST_WEEKS)

_SCORED, _UNUSUAL, _KNOWN, _FAR, _LOUD = 1, 2, 4, 8, 16  # marks of a sample

Marks = NDArray[np.uint8]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What live evaluation keeps of n series: an hour, the oldest sample first."""

    residual: Float32s  # (n, samples of an hour); NaN: not known
    marks: Marks  # the same shape
    is_open: Bools  # (n,)

    @classmethod
    def empty(cls, series: int, step_ms: int) -> Memory:
        """Return the memory of a new evaluation: it reports nothing for half an hour."""
        shape = (series, HOUR_MS // step_ms)
        return cls(
            residual=np.full(shape, np.nan, np.float32),
            marks=np.zeros(shape, np.uint8),
            is_open=np.zeros(series, np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Judges the samples of one day; holds everything that is known before the first sample."""

    threshold: Float32s  # (n,) infinite where nothing may open
    drift_threshold: Float32s  # (n,) the same; infinite in the first weeks as well
    expected: Expected
    policies: Policies
    step_ms: int
    novelty_from: float

    @classmethod
    def of(
        cls, baselines: BaselineBlock, calendar: CivilDay, step_ms: int, settings: BaselineSettings
    ) -> Judge:
        """Prepare to judge a day by the baselines in force."""
        may_open = np.isin(baselines.outcome, _JUDGED)
        threshold = np.where(may_open, baselines.threshold, np.float32(np.inf))
        knows_weeks = baselines.reason != _FIRST_WEEKS  # before, a Monday drifts off the week-end
        return cls(
            threshold=threshold,
            drift_threshold=np.where(knows_weeks, threshold, np.float32(np.inf)),
            expected=Expected.on(Faces.of(baselines, calendar), calendar, step_ms),
            policies=Policies.of(baselines.metric, settings),
            step_ms=step_ms,
            novelty_from=novelty_from(settings),
        )

    def live(self, memory: Memory, sample: int, values: Float32s) -> tuple[Memory, Verdict]:
        """Judge the sample of that number, one value per series; NaN: not measured."""
        now = slice(sample, sample + 1)
        here = self.expected
        expected = Expected(here.mid[:, now], here.upper[:, now], here.lower[:, now])
        scores = self._scores(values[:, None] - expected.mid, expected, memory)
        marks = np.concatenate([memory.marks[:, 1:], self._marks(scores)], axis=1)
        opens, closes = (mask[:, 0] for mask in self._changes(marks, 1))
        is_open = np.where(memory.is_open, ~closes, opens)
        after = Memory(
            residual=np.concatenate([memory.residual[:, 1:], scores.residual], axis=1),
            marks=marks,
            is_open=is_open,
        )
        return after, Verdict(
            scores=scores,
            opened=is_open & ~memory.is_open,
            closed=memory.is_open & ~is_open,
        )

    def replay(self, memory: Memory, day: DayBlock) -> tuple[Memory, list[Opening], Scores]:
        """Judge a whole day at once, with the same result as `live` sample by sample."""
        scores = self._scores(day.values - self.expected.mid, self.expected, memory)
        marks = np.concatenate([memory.marks, self._marks(scores)], axis=1)
        hour, samples = memory.marks.shape[1], day.values.shape[1]
        opens, closes = self._changes(marks, samples)
        openings: list[Opening] = []
        is_open = memory.is_open.copy()
        for row in np.flatnonzero(opens.any(axis=1) | memory.is_open).tolist():
            episodes = _episodes(opens[row], closes[row], is_open=bool(memory.is_open[row]))
            openings.extend(Opening(row, opened, closed) for opened, closed in episodes)
            is_open[row] = bool(episodes) and episodes[-1][1] is None
        longer = np.concatenate([memory.residual, scores.residual], axis=1)
        after = Memory(residual=longer[:, -hour:], marks=marks[:, -hour:], is_open=is_open)
        return after, openings, scores

    def take(self, rows: NDArray[np.int64]) -> Judge:
        """Return a judge of some of the series."""
        here = self.expected
        return replace(
            self,
            threshold=self.threshold[rows],
            drift_threshold=self.drift_threshold[rows],
            expected=Expected(here.mid[rows], here.upper[rows], here.lower[rows]),
            policies=self.policies.take(rows),
        )

    def _scores(self, residual: Float32s, expected: Expected, memory: Memory) -> Scores:
        return score_residuals(
            residual,
            expected,
            self.policies,
            earlier=memory.residual,
            novelty_from=self.novelty_from,
        )

    def _marks(self, scores: Scores) -> Marks:
        threshold = self.threshold[:, None]
        marks = np.where(np.isnan(scores.score), 0, _SCORED)
        marks += np.where(scores.score > threshold, _UNUSUAL, 0)
        marks += np.where(np.isnan(scores.seasonal), 0, _KNOWN)
        marks += np.where(scores.seasonal > self.drift_threshold[:, None], _FAR, 0)
        marks += np.where(scores.seasonal >= threshold * np.float32(CLOSE_SHARE), _LOUD, 0)
        return marks.astype(np.uint8)

    def _changes(self, marks: Marks, samples: int) -> tuple[Bools, Bools]:
        """Return where the last samples would open and where they would close: (n, samples) each."""
        opening = _cells(self.policies.open_seconds, self.step_ms)
        drifting = _cells(self.policies.drift_seconds, self.step_ms)
        closing = np.full_like(opening, _cells(np.array(CLOSE_SECONDS), self.step_ms))
        opens = _all_of(marks, _SCORED, _UNUSUAL, opening, samples)
        opens |= _all_of(marks, _KNOWN, _FAR, drifting, samples)
        present, loud = (_counts(marks, mark, closing, samples) for mark in (_KNOWN, _LOUD))
        return opens, (loud == 0) & (2 * present >= closing[:, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """The judgement of one sample of n series: (n,), of the scores (n, 1)."""

    scores: Scores
    opened: Bools
    closed: Bools


@dataclass(frozen=True, slots=True)
class Opening:
    """An unusual episode within a day, by numbers of samples."""

    row: int
    opened: int | None  # None: before that day
    closed: int | None  # None: it is open at the end of the day


def novelty_from(settings: BaselineSettings) -> float:
    """Return the seasonal score below which novelty decides nothing, not even about the cap."""
    return settings.k_min / max(settings.cap_margin, 1.0)


def _cells(seconds: NDArray[np.int64], step_ms: int) -> NDArray[np.int64]:
    return np.maximum(1, seconds * 1000 // step_ms)


def _all_of(
    marks: Marks, present_mark: int, event_mark: int, width: NDArray[np.int64], samples: int
) -> Bools:
    """Mark where this sample and all known ones of a window carry a mark, and half are known."""
    there, so = (_counts(marks, mark, width, samples) for mark in (present_mark, event_mark))
    is_so_now = (marks[:, -samples:] & event_mark) > 0
    mask: Bools = is_so_now & (so == there) & (2 * there >= width[:, None])
    return mask


def _counts(marks: Marks, mark: int, width: NDArray[np.int64], samples: int) -> NDArray[np.int32]:
    """Return how many of the last `width` samples carry a mark, for each of the last samples."""
    carried = np.cumsum((marks & mark) > 0, axis=1, dtype=np.int32)
    total = np.concatenate([np.zeros((len(marks), 1), np.int32), carried], axis=1)
    ends = np.arange(marks.shape[1] - samples, marks.shape[1]) + 1
    begins = np.maximum(0, ends[None, :] - width[:, None])
    counts: NDArray[np.int32] = total[:, ends] - np.take_along_axis(total, begins, axis=1)
    return counts


def _episodes(opens: Bools, closes: Bools, *, is_open: bool) -> list[tuple[int | None, int | None]]:
    """Return (opened, closed) in order, from where it could open and where it could close."""
    starts, ends = np.flatnonzero(opens), np.flatnonzero(closes)
    episodes: list[tuple[int | None, int | None]] = []
    opened: int | None = None
    after = -1
    while True:
        if not is_open:
            place = int(np.searchsorted(starts, after, side="right"))
            if place == len(starts):
                return episodes
            after = opened = int(starts[place])
        place = int(np.searchsorted(ends, after, side="right"))
        if place == len(ends):
            return [*episodes, (opened, None)]
        after, is_open = int(ends[place]), False
        episodes.append((opened, after))
