"""Live evaluation of samples against a baseline, and the same over a whole day at once.

The result depends on windows alone: no more than the last hour of residuals, half an hour of marks and
whether an episode is open. So a replayed day gives the same result as the live evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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

SCORED, UNUSUAL, KNOWN, FAR, LOUD = (np.uint8(1 << bit) for bit in range(5))  # marks of a sample

Marks = NDArray[np.uint8]
Bools = NDArray[np.bool_]
# How many samples of windows carry a mark: (mark, width of each series' window) -> counts.
Count = Callable[[np.uint8, NDArray[np.int64]], NDArray[np.int32]]


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
    slots: Faces  # what is expected that day, slots first: (FACE, n) each
    calendar: CivilDay
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
            slots=Faces.of(baselines, calendar).transpose(),
            calendar=calendar,
            policies=Policies.of(baselines.metric, settings),
            step_ms=step_ms,
            novelty_from=novelty_from(settings),
        )

    @classmethod
    def join(cls, parts: Sequence[Judge]) -> Judge:
        """Return one judge of all parts' series: baselines are read some thousands at a time."""
        first = parts[0]
        faces = (
            np.concatenate([getattr(part.slots, name) for part in parts], axis=1)
            for name in ("mid", "upper", "lower")
        )
        return replace(
            first,
            threshold=np.concatenate([part.threshold for part in parts]),
            drift_threshold=np.concatenate([part.drift_threshold for part in parts]),
            slots=Faces(*faces),
            policies=Policies.join([part.policies for part in parts]),
        )

    @property
    def nbytes(self) -> int:
        """How many bytes are held."""
        columns = [getattr(self.slots, name) for name in ("mid", "upper", "lower")]
        columns += [self.threshold, self.drift_threshold]
        columns += [getattr(self.policies, name) for name in self.policies.__slots__]
        return sum(column.nbytes for column in columns)

    @property
    def expected(self) -> Expected:
        """What is expected of every sample of the day, drawn anew: many times as large as the judge."""
        here = self.slots
        faces = Faces(here.mid.T, here.upper.T, here.lower.T)
        return Expected.on(faces, self.calendar, self.step_ms)

    def expected_at(self, sample: int) -> Expected:
        """Return what is expected of one sample, bit for bit the same: (n, 1) each."""
        return Expected.at(self.slots, self.calendar, self.step_ms, sample)

    def replay(self, memory: Memory, day: DayBlock) -> tuple[Memory, list[Opening], Scores]:
        """Judge a whole day at once, with the same result as `live` sample by sample."""
        expected = self.expected
        scores = score_residuals(
            day.values - expected.mid,
            expected,
            self.policies,
            earlier=memory.residual,
            novelty_from=self.novelty_from,
        )
        marks = np.concatenate([memory.marks, self.mark(scores)], axis=1)
        hour, samples = memory.marks.shape[1], day.values.shape[1]
        openings: list[Opening] = []
        is_open = memory.is_open.copy()
        may_open = (marks[:, -samples:] & (UNUSUAL | FAR)).any(axis=1)
        rows = np.flatnonzero(may_open | is_open)  # few: windows are dear
        theirs = marks[rows]
        count = partial(_counts, theirs, samples)
        opens, closes = self.changes(theirs[:, -samples:], count, rows)
        for place, row in enumerate(rows.tolist()):
            episodes = _episodes(opens[place], closes[place], is_open=bool(is_open[row]))
            openings.extend(Opening(row, opened, closed) for opened, closed in episodes)
            is_open[row] = bool(episodes) and episodes[-1][1] is None
        longer = np.concatenate([memory.residual, scores.residual], axis=1)
        after = Memory(residual=longer[:, -hour:], marks=marks[:, -hour:], is_open=is_open)
        return after, openings, scores

    def take(self, rows: NDArray[np.int64]) -> Judge:
        """Return a judge of some of the series."""
        here = self.slots
        return replace(
            self,
            threshold=self.threshold[rows],
            drift_threshold=self.drift_threshold[rows],
            slots=Faces(here.mid[:, rows], here.upper[:, rows], here.lower[:, rows]),
            policies=self.policies.take(rows),
        )

    def mark(self, scores: Scores) -> Marks:
        """Return the marks of samples by their scores."""
        threshold = self.threshold[:, None]
        marks = ~np.isnan(scores.score) * SCORED
        marks |= (scores.score > threshold) * UNUSUAL
        marks |= ~np.isnan(scores.seasonal) * KNOWN
        marks |= (scores.seasonal > self.drift_threshold[:, None]) * FAR
        marks |= (scores.seasonal >= threshold * np.float32(CLOSE_SHARE)) * LOUD
        return marks

    def changes(
        self, now: Marks, count: Count, rows: slice | NDArray[np.int64] = slice(None)
    ) -> tuple[Bools, Bools]:
        """Return at which samples series would open and at which they would close: as `now`.

        Args:
            now: the marks of these samples, (n, samples).
            count: counts marks in the windows that end with each of them.
            rows: which of the judge's series they are of.
        """
        opening = _cells(self.policies.open_seconds[rows], self.step_ms)
        drifting = _cells(self.policies.drift_seconds[rows], self.step_ms)
        closing = np.full_like(opening, _cells(np.array(CLOSE_SECONDS), self.step_ms))
        opens = _all_of(now, count, (SCORED, UNUSUAL), opening)
        opens |= _all_of(now, count, (KNOWN, FAR), drifting)
        present, loud = (count(mark, closing) for mark in (KNOWN, LOUD))
        return opens, (loud == 0) & (2 * present >= closing[:, None])


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
    now: Marks, count: Count, of: tuple[np.uint8, np.uint8], width: NDArray[np.int64]
) -> Bools:
    """Mark where this sample and all known ones of a window carry a mark, and half are known.

    `of` are the mark of known samples and the mark that they are to carry.
    """
    there, so = (count(mark, width) for mark in of)
    mask: Bools = ((now & of[1]) > 0) & (so == there) & (2 * there >= width[:, None])
    return mask


def _counts(
    marks: Marks, samples: int, mark: np.uint8, width: NDArray[np.int64]
) -> NDArray[np.int32]:
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
