"""The level correction: what a profile expects is moved to the level of the last days.

A profile of ten days or five weeks follows growth late. The correction makes up for it: a summand, or for
rates, whose quiet hours grow in proportion, a share of what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import SLOTS_PER_WEEK
from rules.baseline.clockface import wrap_day
from rules.baseline.order import medians
from rules.baseline.profiles import CONSTANT, DAILY, WEEKLY, Candidates
from rules.baseline.rings import Records

_HALF: Final = np.float32(0.5)
_MOST: Final = np.float32(1000)  # times the usual level
_LEAST_LEVEL: Final = np.float32(1e-6)  # less is no level: shares of it have no meaning
_NEVER: Final = np.float32(np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """How the profiles of n series are corrected."""

    level: Float32s  # (n,) the usual size of a series in proportion; infinite: a summand is added
    least: Float32s  # (n, 48) the least that was measured in a slot in 35 days, or on the last day
    most: Float32s  # (n, 48)

    @classmethod
    def of(
        cls,
        records: Records,
        candidates: Candidates,
        profile: NDArray[np.uint8],
        is_proportional: NDArray[np.bool_],
    ) -> Self:
        """Return what the correction of these profiles needs, by the states."""
        level = np.full(len(records), _NEVER)
        week = candidates.week.reshape(-1, SLOTS_PER_WEEK)
        for code, slots in (
            (CONSTANT, candidates.constant[:, None]),
            (DAILY, candidates.daily),
            (WEEKLY, week),
        ):
            rows = np.flatnonzero(is_proportional & (profile == code))
            level[rows] = medians(np.abs(slots[rows]))
        level[level < _LEAST_LEVEL] = _NEVER
        levels = records["levels"]
        return cls(
            level,
            np.fmin(np.fmin.reduce(levels, axis=1), records["seen_least"][:, None]),
            np.fmax(np.fmax.reduce(levels, axis=1), records["seen_most"][:, None]),
        )

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Correction:
        """Return the corrections of some series."""
        return Correction(self.level[rows], self.least[rows], self.most[rows])

    def weights(self, expected: Float32s) -> Float32s:
        """Return how much of a correction belongs to what is expected, (n, ...): 1 at the usual level.

        Half of that level is the least: a quiet hour is not measured well enough.
        """
        level = self.level[:, None]
        weights = np.clip(np.abs(expected) / level, _HALF, _MOST)
        return np.where(np.isinf(level), np.float32(1), weights)

    def apply(self, face: Float32s, delta: Float32s, days: int) -> Float32s:
        """Return slots (n, 48 * days), or the face of a day if there are none, with their level corrected.

        A correction never leaves what was measured in a slot: one of a whole day is more than a quiet
        hour has, and less than nothing would be expected.
        """
        least, most = (
            np.tile(side, days) if days else wrap_day(side) for side in (self.least, self.most)
        )
        moved = face + delta[:, None] * self.weights(face)
        return np.clip(moved, np.fmin(face, least), np.fmax(face, most))


def agree(seen: Float32s, before: Float32s) -> Float32s:
    """Return the lesser of two days' corrections if they are on the same side, else none.

    One day may be a holiday, or an incident. Where the day before is not known one day is enough.
    """
    lesser = np.where(np.abs(before) < np.abs(seen), before, seen)
    agreed = np.where(before * seen > 0, lesser, np.float32(0))
    return np.where(np.isnan(before), seen, agreed)
