"""How unusual samples are: far from what is expected there and then, and new within the last hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from rules.baseline.blocks import BaselineBlock, Float32s
from rules.baseline.civil import SLOTS_PER_DAY, CivilDay
from rules.baseline.clockface import (
    draw_sample,
    draw_samples,
    edges,
    edges_at,
    of_week,
    wrap_day,
)
from rules.baseline.order import medians
from rules.baseline.scales import Policies

HOUR_MS: Final = 3_600_000
_AT_ONCE: Final = 4096  # windows of an hour whose medians are found together: bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Faces:
    """What is expected of n series on one day, and the edges of what is usual: (n, FACE) each."""

    mid: Float32s
    upper: Float32s
    lower: Float32s

    @classmethod
    def of(cls, baselines: BaselineBlock, calendar: CivilDay) -> Faces:
        """Return a day's part of published baselines; NaN where a series has no band."""
        is_week = (baselines.slots > SLOTS_PER_DAY)[:, None]

        def face(column: Float32s) -> Float32s:
            week = column.reshape(len(column), 7, SLOTS_PER_DAY)
            return np.where(is_week, of_week(week, calendar.weekday), wrap_day(week[:, 0]))

        return cls(face(baselines.mid), face(baselines.upper), face(baselines.lower))

    def transpose(self) -> Faces:
        """Return the same with the slots first, so that those of one sample lie together."""
        return Faces(*(np.ascontiguousarray(face.T) for face in (self.mid, self.upper, self.lower)))


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """The same for every sample of a stretch: (n, samples) each."""

    mid: Float32s
    upper: Float32s
    lower: Float32s

    @classmethod
    def on(cls, faces: Faces, calendar: CivilDay, step_ms: int) -> Expected:
        """Return what is expected of every sample of a day."""
        per_quarter = calendar.samples(step_ms) // len(calendar.quarters)
        mid = draw_samples(faces.mid, calendar.quarters, per_quarter)
        return cls(mid, *edges(faces.upper, faces.lower, calendar, per_quarter))

    @classmethod
    def at(cls, slots: Faces, calendar: CivilDay, step_ms: int, sample: int) -> Expected:
        """Return the same of one sample, (n, 1) each, from faces with the slots first."""
        per_quarter = calendar.samples(step_ms) // len(calendar.quarters)
        place, cell = divmod(sample, per_quarter)
        mid = draw_sample(slots.mid, int(calendar.quarters[place]), cell, per_quarter)
        above, below = edges_at(slots.upper, slots.lower, calendar, sample, per_quarter)
        return cls(mid[:, None], above[:, None], below[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How unusual samples are, in usual deviations on the side on which they are; NaN: not known.

    `residual` is the value less what is expected, `seasonal` its size, and `score` the lesser of that and of
    the distance from the median residual of the hour before, on the same side.
    """

    residual: Float32s
    seasonal: Float32s
    score: Float32s


def seasonal_scores(
    residual: Float32s, expected: Expected, policies: Policies
) -> tuple[Float32s, Float32s, Float32s]:
    """Return the scores of residuals, and the scales above and below that they were divided by.

    A side that the policy ignores scores 0.
    """
    above, below = expected.upper - expected.mid, expected.mid - expected.lower
    return _score_sides(residual, above, below, policies), above, below


def score_residuals(
    residual: Float32s,
    expected: Expected,
    policies: Policies,
    *,
    earlier: Float32s,
    novelty_from: float,
) -> Scores:
    """Score residuals, shape (n, samples).

    `earlier` are the residuals of the hour before the first sample, (n, samples of an hour). Where fewer
    than half of an hour are known there is no score. The median of the hour is computed only where the
    seasonal score is above `novelty_from`: below it, the score could not reach any threshold.
    """
    seasonal, above, below = seasonal_scores(residual, expected, policies)
    score = seasonal.copy()
    places = np.flatnonzero(seasonal > np.float32(novelty_from))
    hour = earlier.shape[1]
    longer = np.concatenate([earlier, residual], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(longer, hour, axis=1)
    for first in range(0, len(places), _AT_ONCE):
        row, column = np.divmod(places[first : first + _AT_ONCE], residual.shape[1])
        usual = medians(windows[row, column], (hour + 1) // 2)
        sides = above[row, column], below[row, column]
        new = _novelty(residual[row, column], usual, sides, policies.take(row))
        score[row, column] = np.minimum(score[row, column], new)
    return Scores(residual, seasonal, score)


def score_sample(
    residual: Float32s,
    expected: Expected,
    policies: Policies,
    *,
    ring: Float32s,
    novelty_from: float,
) -> Scores:
    """Score the residuals of one sample, shape (n, 1), as `score_residuals` does.

    `ring` has the residuals of the hour before in any order, (samples of an hour, n).
    """
    seasonal, above, below = seasonal_scores(residual, expected, policies)
    score = seasonal.copy()
    rows = np.flatnonzero(seasonal[:, 0] > np.float32(novelty_from))
    for first in range(0, len(rows), _AT_ONCE):
        row = rows[first : first + _AT_ONCE]
        usual = medians(np.ascontiguousarray(ring[:, row].T), (len(ring) + 1) // 2)
        sides = above[row, 0], below[row, 0]
        new = _novelty(residual[row, 0], usual, sides, policies.take(row))
        score[row, 0] = np.minimum(score[row, 0], new)
    return Scores(residual, seasonal, score)


def _novelty(
    residual: Float32s, usual: Float32s, sides: tuple[Float32s, Float32s], policies: Policies
) -> Float32s:
    """Return how far each residual has moved away from what was usual in the hour before it.

    A move back is less than zero: what returns from a new level is not unusual because it is quick.
    """
    moved = residual - usual
    above, below = sides
    high = moved / above * policies.above
    low = moved / below * -policies.below
    return np.where(residual < 0, low, high)


def _score_sides(
    residual: Float32s, above: Float32s, below: Float32s, policies: Policies
) -> Float32s:
    shape = (-1, *[1] * (residual.ndim - 1))
    high = residual / above
    high *= policies.above.reshape(shape)
    low = residual / below
    low *= -policies.below.reshape(shape)
    np.maximum(high, low, out=high)
    return high
