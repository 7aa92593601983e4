"""How far a series usually is from its expected value: per slot and side, never less than overall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import METRICS, Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.clockface import gather_slots
from rules.baseline.order import (
    count_known,
    count_known_sorted,
    day_quantiles,
    medians,
    quantiles,
    shares_of_days,
)
from rules.baseline.policy import BaselineSettings, Direction
from rules.baseline.rings import Records

LOW_SHARE: Final = 0.05
HIGH_SHARE: Final = 0.95
TO_ZERO: Final = 0.9  # of the scale at which a fall to zero reaches just the least threshold
NEW_LEVEL: Final = np.float32(0.2 / 3)  # of what is expected: the least that is called a new level

_NONE: Final = np.float32(np.nan)  # of no effect on the greatest of several


@dataclass(frozen=True, slots=True, eq=False)
class Policies:
    """The policies of n series as columns."""

    least: Float32s  # (n,) the least scale, in the metric's unit
    relative: Float32s  # (n,) the least scale, of what is expected
    rise: Float32s  # (n,) the same above
    above: Float32s  # (n,) 1 where values above are reported, else 0
    below: Float32s  # (n,)
    min_nonzero: NDArray[np.float64]  # (n,)
    open_seconds: NDArray[np.int64]  # (n,)
    drift_seconds: NDArray[np.int64]  # (n,)
    days_share: Float32s  # (n,)
    is_proportional: NDArray[np.bool_]  # (n,)
    to_zero: Float32s  # (n,) a scale, of what is expected, at which a fall to zero is reported
    hours_above: NDArray[np.int64]  # (n,)
    fall_share: Float32s  # (n,)
    is_backlog: NDArray[np.bool_]  # (n,)

    @classmethod
    def of(cls, metric: NDArray[np.uint8], settings: BaselineSettings) -> Policies:
        """Return the policy of each series by its metric's code."""
        table = [settings.policies[policy] for policy in METRICS]
        k_min = settings.k_min
        relative = [max(settings.relative_floor, policy.min_relative / k_min) for policy in table]
        rise = [
            max(
                settings.relative_floor,
                (policy.min_relative if policy.min_rise is None else policy.min_rise) / k_min,
            )
            for policy in table
        ]
        above = [policy.direction is not Direction.BELOW for policy in table]
        below = [policy.direction is not Direction.ABOVE for policy in table]
        return cls(
            np.array([policy.min_deviation / k_min for policy in table], np.float32)[metric],
            np.array(relative, np.float32)[metric],
            np.array(rise, np.float32)[metric],
            np.array(above, np.float32)[metric],
            np.array(below, np.float32)[metric],
            np.array([policy.min_nonzero for policy in table])[metric],
            np.array([policy.open_seconds for policy in table])[metric],
            np.array([policy.drift_seconds for policy in table])[metric],
            np.array([policy.days_share for policy in table], np.float32)[metric],
            np.array([policy.is_proportional for policy in table])[metric],
            np.full(len(metric), TO_ZERO / k_min, np.float32),
            np.array([policy.hours_above for policy in table])[metric],
            np.array([policy.fall_share for policy in table], np.float32)[metric],
            np.array([policy.is_backlog for policy in table])[metric],
        )

    def take(self, rows: NDArray[np.int64]) -> Policies:
        """Return the policies of some series."""
        return Policies(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def join(cls, parts: Sequence[Policies]) -> Policies:
        """Return the policies of all parts, one after another."""
        columns = ([getattr(part, name) for part in parts] for name in cls.__slots__)
        return cls(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """The parts of the scales that do not depend on what is expected."""

    above: Float32s  # (n, 48)
    below: Float32s  # (n, 48)
    relative: Float32s  # (n,) the least above, of what is expected
    relative_below: Float32s  # (n,)
    new_level: Float32s  # (n,) a smaller share of what is expected is no new level
    overall: (
        Float32s  # (n,) the least, in the metric's unit; of proportional ones the policy's alone
    )


def scales(records: Records, policies: Policies) -> Scales:
    """Return max(S_j, half the median of S over the slots, G, the policy's least), for both sides.

    S_j is the median over 14 days of the daily q95 (or -q05) of residuals in slot j, or the policy's
    other quantile; G is the median over 28 days of the daily q95 of |residual|. Of a proportional series
    G is a share of what is expected, and means half the median as well; below it is no more than
    lets a fall to zero pass the least threshold.
    """
    usual = medians(records["scale"])
    overall = np.fmax(np.where(policies.is_proportional, _NONE, usual), policies.least)
    scatter = np.where(policies.is_proportional, usual, _NONE)
    sides = []
    for name in ("above", "below"):
        by_slot = shares_of_days(records[name], policies.days_share)
        half = np.where(policies.is_proportional, _NONE, medians(by_slot) * np.float32(0.5))
        sides.append(np.fmax(by_slot, np.fmax(half, overall)[:, None]))
    relative_below = np.fmin(np.fmax(scatter, policies.relative), policies.to_zero)
    relative = np.fmax(scatter, policies.rise)
    new_level = np.fmax(scatter, np.fmin(policies.relative, NEW_LEVEL))
    return Scales(sides[0], sides[1], relative, relative_below, new_level, overall)


def edges_of(mid: Float32s, side: Float32s, relative: Float32s) -> Float32s:
    """Return the scale of each slot: no less than a share of what is expected there, shape (n, slots)."""
    return np.fmax(side, np.abs(mid) * relative[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """A day's residuals, and what they are residuals of."""

    values: Float32s  # (n, samples)
    mid: Float32s  # (n, samples)
    level: Float32s  # (n,) the median of what was expected


def keep_residuals(
    records: Records, residuals: Residuals, policies: Policies, calendar: CivilDay, least: int
) -> None:
    """Remember a day's residual quantiles per slot, and over the day if `least` samples are known.

    A slot needs half of its samples. Of a proportional series the quantile over the day is that of
    |residual| / |expected|, where half of its level is the least that counts as expected.
    """
    values = residuals.values
    in_slot, expected = gather_slots(values, calendar, widened=False)
    ordered = np.sort(in_slot, axis=-1)
    counts = count_known_sorted(ordered)
    is_enough = (counts > 0) & (2 * counts >= expected)
    for name, share, sign in (("above", HIGH_SHARE, 1), ("below", LOW_SHARE, -1)):
        edges = quantiles(ordered, counts, share) * np.float32(sign) + np.float32(0)
        place = calendar.number % records[name].shape[1]
        records[name][:, place] = np.where(is_enough, edges, np.float32(np.nan))
    size = np.abs(values)
    rows = np.flatnonzero(policies.is_proportional)
    half = np.fmax(np.abs(residuals.level[rows]) * np.float32(0.5), policies.least[rows])
    size[rows] /= np.fmax(np.abs(residuals.mid[rows]), half[:, None])
    overall = day_quantiles(size, HIGH_SHARE)
    is_enough = count_known(values) >= least
    place = calendar.number % records["scale"].shape[1]
    records["scale"][:, place] = np.where(is_enough, overall, np.float32(np.nan))
