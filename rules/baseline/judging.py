"""Live evaluation of samples against a baseline, and the same over a whole day at once.

The result depends on windows alone: no more than the last hour of residuals, half an hour of marks and
whether an episode is open. So a replayed day gives the same result as the live evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from rules.baseline.clockface import draw_sample
from rules.baseline.policy import BaselineSettings
from rules.baseline.scales import Policies
from rules.baseline.scores import HOUR_MS, Expected, Faces, Scores, score_residuals
from rules.baseline.windows import Bools, DayWindows, Marks, Windows

CLOSE_SECONDS: Final = 600  # so long it must be calm
CLOSE_SHARE: Final = 0.6  # of the threshold: below it is calm
STILL_SHARE: Final = 0.9  # of the greatest since it began: a backlog below it is being worked off
_JUDGED: Final = tuple(OUTCOMES.index(outcome) for outcome in (Outcome.BANDED, Outcome.NO_DATA))
_FIRST_WEEKS: Final = REASONS.index(Reason.FIRST_WEEKS)

# Marks of a sample.
SCORED, UNUSUAL, KNOWN, FAR, LOUD, FALLEN = (np.uint8(1 << bit) for bit in range(6))
OPENING: Final = UNUSUAL | FAR | FALLEN  # without one of them it opens nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What live evaluation keeps of n series: an hour, the oldest sample first."""

    residual: Float32s  # (n, samples of an hour); NaN: not known
    marks: Marks  # the same shape
    is_open: Bools  # (n,)
    expected: Float32s  # (n,) of the next sample, by what the residuals are distances from

    @classmethod
    def empty(cls, series: int, step_ms: int) -> Memory:
        """Return the memory of a new evaluation: it reports nothing for half an hour."""
        shape = (series, HOUR_MS // step_ms)
        return cls(
            residual=np.full(shape, np.nan, np.float32),
            marks=np.zeros(shape, np.uint8),
            is_open=np.zeros(series, np.bool_),
            expected=np.full(series, np.nan, np.float32),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Judges the samples of one day; holds everything that is known before the first sample."""

    above: Float32s  # (n,) the threshold of values above; infinite where nothing may open
    below: Float32s  # (n,) the same of values below
    drift: Float32s  # (n,) the same of slow changes; infinite in the first weeks as well
    fall_share: Float32s  # (n,) what is less than this share of the expected has fallen; 0: nothing
    slots: Faces  # what is expected that day, slots first: (FACE, n) each
    calendar: CivilDay
    policies: Policies
    step_ms: int
    novelty_from: float
    k_min: float

    @classmethod
    def of(
        cls, baselines: BaselineBlock, calendar: CivilDay, step_ms: int, settings: BaselineSettings
    ) -> Judge:
        """Prepare to judge a day by the baselines in force."""
        may_open = np.isin(baselines.outcome, _JUDGED)
        never = np.float32(np.inf)
        knows_weeks = baselines.reason != _FIRST_WEEKS  # before, a Monday drifts off the week-end
        policies = Policies.of(baselines.metric, settings)
        drifts = may_open & knows_weeks & (policies.drift_seconds > 0)
        return cls(
            above=np.where(may_open, baselines.threshold, never),
            below=np.where(may_open, baselines.threshold_below, never),
            drift=np.where(drifts, baselines.drift_threshold, never),
            fall_share=np.where(may_open, baselines.fall_share, np.float32(0)),
            slots=Faces.of(baselines, calendar).transpose(),
            calendar=calendar,
            policies=policies,
            step_ms=step_ms,
            novelty_from=novelty_from(settings),
            k_min=settings.k_min,
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
            above=np.concatenate([part.above for part in parts]),
            below=np.concatenate([part.below for part in parts]),
            drift=np.concatenate([part.drift for part in parts]),
            fall_share=np.concatenate([part.fall_share for part in parts]),
            slots=Faces(*faces),
            policies=Policies.join([part.policies for part in parts]),
        )

    @property
    def nbytes(self) -> int:
        """How many bytes are held."""
        columns = [getattr(self.slots, name) for name in ("mid", "upper", "lower")]
        columns += [self.above, self.below, self.drift, self.fall_share]
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

    def mid_at(self, sample: int) -> Float32s:
        """Return the expected value of one sample, (n,); that behind the day's last one too."""
        per_quarter = self.calendar.samples(self.step_ms) // len(self.calendar.quarters)
        place, cell = divmod(sample, per_quarter)
        quarters = self.calendar.quarters
        quarter = int(quarters[place]) if place < len(quarters) else int(quarters[-1]) + 1
        return draw_sample(self.slots.mid, quarter, cell, per_quarter)

    def rebase(self, memory: Memory, sample: int) -> Float32s:
        """Return by how much what the memory's residuals are distances from lies above this judge's.

        At midnight a band may move. The hour before it must not look like a change of the series.
        """
        return memory.expected - self.mid_at(sample)

    def replay(self, memory: Memory, day: DayBlock) -> tuple[Memory, list[Opening], Scores]:
        """Judge a whole day at once, with the same result as `live` sample by sample."""
        expected = self.expected
        earlier = memory.residual + self.rebase(memory, 0)[:, None]
        scores = score_residuals(
            day.values - expected.mid,
            expected,
            self.policies,
            earlier=earlier,
            novelty_from=self.novelty_from,
        )
        marks = np.concatenate([memory.marks, self.mark(scores, expected.mid)], axis=1)
        longer = np.concatenate([earlier, scores.residual], axis=1)
        hour, samples = memory.marks.shape[1], day.values.shape[1]
        openings: list[Opening] = []
        is_open = memory.is_open.copy()
        may_open = (marks[:, -samples:] & OPENING).any(axis=1)
        rows = np.flatnonzero(may_open | is_open)  # few: windows are dear
        opens, closes = self.changes(DayWindows(marks[rows], longer[rows], samples), rows)
        for place, row in enumerate(rows.tolist()):
            episodes = _episodes(opens[place], closes[place], is_open=bool(is_open[row]))
            openings.extend(Opening(row, opened, closed) for opened, closed in episodes)
            is_open[row] = bool(episodes) and episodes[-1][1] is None
        after = Memory(
            residual=longer[:, -hour:],
            marks=marks[:, -hour:],
            is_open=is_open,
            expected=self.mid_at(samples),
        )
        return after, openings, scores

    def take(self, rows: NDArray[np.int64]) -> Judge:
        """Return a judge of some of the series."""
        here = self.slots
        return replace(
            self,
            above=self.above[rows],
            below=self.below[rows],
            drift=self.drift[rows],
            fall_share=self.fall_share[rows],
            slots=Faces(here.mid[:, rows], here.upper[:, rows], here.lower[:, rows]),
            policies=self.policies.take(rows),
        )

    def mark(self, scores: Scores, mid: Float32s) -> Marks:
        """Return the marks of samples by their scores and by what was expected of them."""
        is_below = scores.residual < 0
        threshold = np.where(is_below, self.below[:, None], self.above[:, None])
        least = (self.policies.least * np.float32(self.k_min))[:, None]
        fallen = np.maximum(mid * (1 - self.fall_share)[:, None], least)
        marks = ~np.isnan(scores.score) * SCORED
        marks |= (scores.score > threshold) * UNUSUAL
        marks |= ~np.isnan(scores.seasonal) * KNOWN
        marks |= (scores.seasonal > self.drift[:, None]) * FAR
        marks |= (scores.seasonal >= threshold * np.float32(CLOSE_SHARE)) * LOUD
        has_fallen = (-scores.residual > fallen) & (scores.seasonal >= 1)
        has_fallen &= (self.fall_share > 0)[:, None]
        marks |= has_fallen * (FALLEN | LOUD)
        return marks

    def changes(self, windows: Windows, rows: NDArray[np.int64]) -> tuple[Bools, Bools]:
        """Return at which samples series would open and at which they would close: (n, samples).

        `rows` are those of the judge's series that the windows are of.
        """
        policies = self.policies.take(rows)
        opening, drifting = (
            _cells(seconds, self.step_ms)
            for seconds in (policies.open_seconds, policies.drift_seconds)
        )
        closing = np.full_like(opening, _cells(np.array(CLOSE_SECONDS), self.step_ms))
        opens = _all_of(windows, (SCORED, UNUSUAL), opening)
        opens |= _all_of(windows, (KNOWN, FAR), drifting)
        opens |= _all_of(windows, (KNOWN, FALLEN), opening)
        peak = windows.greatest(opening)
        is_falling = windows.residual < peak * np.float32(STILL_SHARE)
        opens &= ~(is_falling & policies.is_backlog[:, None])
        present, loud = (windows.count(mark, closing) for mark in (KNOWN, LOUD))
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


def _all_of(windows: Windows, of: tuple[np.uint8, np.uint8], width: NDArray[np.int64]) -> Bools:
    """Mark where this sample and all known ones of a window carry a mark, and half are known.

    `of` are the mark of known samples and the mark that they are to carry.
    """
    there, so = (windows.count(mark, width) for mark in of)
    mask: Bools = ((windows.marks & of[1]) > 0) & (so == there) & (2 * there >= width[:, None])
    return mask


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
