"""How far from what is expected a series usually is: per slot and side, never less than over all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import METRICS, Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.clockface import gathered
from rules.baseline.order import day_quantiles, known_in, medians, medians_of_days, quantiles
from rules.baseline.policy import Direction
from rules.baseline.rings import Records
from rules.baseline.settings import NightSettings

LOW_SHARE: Final = 0.05
HIGH_SHARE: Final = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Policies:
    """The policies of n series as columns."""

    least: Float32s  # (n,) the least scale, in the metric's unit
    relative: Float32s  # (n,) the least scale, of what is expected
    above: Float32s  # (n,) 1 where values above are told, else 0
    below: Float32s  # (n,)
    min_nonzero: NDArray[np.float64]  # (n,)
    open_seconds: NDArray[np.int64]  # (n,)
    drift_seconds: NDArray[np.int64]  # (n,)

    @classmethod
    def of(cls, metric: NDArray[np.uint8], settings: NightSettings) -> Policies:
        """Return the policy of each series by its metric's code."""
        table = [settings.policies[one] for one in METRICS]
        k_min = settings.k_min
        relative = [max(settings.relative_floor, one.min_relative / k_min) for one in table]
        above = [one.direction is not Direction.BELOW for one in table]
        below = [one.direction is not Direction.ABOVE for one in table]
        return cls(
            np.array([one.min_deviation / k_min for one in table], np.float32)[metric],
            np.array(relative, np.float32)[metric],
            np.array(above, np.float32)[metric],
            np.array(below, np.float32)[metric],
            np.array([one.min_nonzero for one in table])[metric],
            np.array([one.open_seconds for one in table])[metric],
            np.array([one.drift_seconds for one in table])[metric],
        )

    def take(self, rows: NDArray[np.int64]) -> Policies:
        """Return the policies of some series."""
        return Policies(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """The part of the scales that does not depend on what is expected: (n, 48)."""

    above: Float32s
    below: Float32s
    overall: Float32s  # (n,) G; NaN: not known yet


def scales(records: Records, policies: Policies) -> Scales:
    """Return max(S_j, half the median of S over the slots, G, the policy's least), for both sides.

    S_j is the median over 14 days of the daily q95 (or -q05) of residuals in slot j; G is the median over
    28 days of the daily q95 of |residual|.
    """
    overall = medians(np.ascontiguousarray(records["scale"]))
    least = np.fmax(overall, policies.least)
    sides = []
    for name in ("above", "below"):
        by_slot = medians_of_days(records[name])
        half = medians(by_slot) * np.float32(0.5)
        sides.append(np.fmax(np.fmax(by_slot, half[:, None]), least[:, None]))
    return Scales(sides[0], sides[1], overall)


def edges_of(mid: Float32s, side: Float32s, relative: Float32s) -> Float32s:
    """Return the scale of each slot: no less than a share of what is expected there."""
    return np.fmax(side, np.abs(mid) * relative.reshape(-1, *[1] * (mid.ndim - 1)))


def keep_residuals(records: Records, residuals: Float32s, calendar: CivilDay, least: int) -> None:
    """Remember a day's residual quantiles per slot, and over the day if `least` samples are known.

    A slot needs half of its samples.
    """
    in_slot, expected = gathered(residuals, calendar, widened=False)
    known = known_in(in_slot)
    ordered = np.sort(in_slot, axis=-1)
    is_enough = (known > 0) & (2 * known >= expected)
    for name, share, sign in (("above", HIGH_SHARE, 1), ("below", LOW_SHARE, -1)):
        found = quantiles(ordered, known, share) * np.float32(sign) + np.float32(0)
        place = calendar.number % records[name].shape[1]
        records[name][:, place] = np.where(is_enough, found, np.float32(np.nan))
    overall = day_quantiles(np.abs(residuals), HIGH_SHARE)
    is_enough = known_in(residuals) >= least
    place = calendar.number % records["scale"].shape[1]
    records["scale"][:, place] = np.where(is_enough, overall, np.float32(np.nan))
