"""A new level: noted by its first run, followed by the ring of slot levels in its second.

A median of ten days or five weeks takes half of that time to follow a new level. The ring is therefore
adapted: the days before are moved onto the new level and keep their shape, so that the cycle need not be
learnt again. They are multiplied where that fits the day better, else shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import QUARTER_MS, SLOTS_PER_DAY, CivilDay
from rules.baseline.order import medians
from rules.baseline.rings import Records, places
from rules.baseline.state import LEVEL_DAYS, MONTH_DAYS

LAST_SLOTS: Final = 24  # 12 hours
SAME_SIDE: Final = 16  # slots, 8 hours
LEAST_DAYS: Final = 7  # of daily medians: before, nothing is called new
FORGOTTEN_DAYS: Final = 28
LASTING: Final = 2  # runs

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A day's slot levels beside what was expected: (n, 48) each."""

    seen: Float32s
    expected: Float32s  # with the correction of the previous run
    by_ring: Float32s  # without it
    same_weekday: Float32s  # the median of the last five; NaN: none is known
    least: Float32s  # (n,) a smaller difference is no new level


def follow(records: Records, levels: Levels, calendar: CivilDay, mads: float) -> NDArray[np.bool_]:
    """Note new levels, let the ring follow those that have lasted two runs, and mark the series that moved.

    To be called before the day enters the rings. Both conditions must also hold against the same weekdays,
    so that no week-end is a new level. A new level: over the last 12 hours the median residual
    is more than `mads` times the median absolute deviation of 28 daily medians away (and more than
    `least`), and the last 16 slots are all on that side.
    """
    _forget(records, calendar)
    pending = np.flatnonzero(records["change_runs"] == 1)
    lasting = _is_lasting(records, levels, pending)
    _move_ring(records, levels, pending[lasting], calendar.number)
    gone = pending[~lasting]
    records["change_runs"][pending[lasting]] = LASTING
    records["change_runs"][gone] = 0
    records["changed_at_ms"][gone] = 0
    for name in ("changed_before", "changed_after"):
        records[name][gone] = np.nan
    _note_changes(records, levels, calendar, mads, pending)
    was_moved = np.zeros(len(records), np.bool_)
    was_moved[pending[lasting]] = True
    return was_moved


def _forget(records: Records, calendar: CivilDay) -> None:
    since = calendar.start_ms - FORGOTTEN_DAYS * _DAY_MS
    old = (records["changed_at_ms"] > 0) & (records["changed_at_ms"] < since)
    records["changed_at_ms"][old] = 0
    records["change_runs"][old] = 0
    for name in ("changed_before", "changed_after"):
        records[name][old] = np.nan


def _is_lasting(records: Records, levels: Levels, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the levels noted by the previous run that persist: by more than half of the change."""
    shift = records["changed_after"][rows] - records["changed_before"][rows]
    lasts = np.ones(len(rows), np.bool_)
    for usual in (levels.by_ring, levels.same_weekday):
        lasts &= medians(levels.seen[rows] - usual[rows]) * np.sign(shift) > np.abs(shift) / 2
    return lasts


def _move_ring(records: Records, levels: Levels, rows: NDArray[np.int64], today: int) -> None:
    """Move the days before today onto today's level."""
    seen, old = levels.seen[rows], levels.by_ring[rows]
    shift = medians(seen - old)
    from_level, to_level = medians(old), medians(seen)
    ratio = np.ones_like(shift)
    np.divide(to_level, from_level, out=ratio, where=(from_level > 0) & (to_level > 0))
    by_shift = medians(np.abs(seen - old - shift[:, None]))
    by_ratio = medians(np.abs(seen - old * ratio[:, None]))
    is_ratio = (ratio != 1) & (by_ratio < by_shift)
    factor = np.where(is_ratio, ratio, np.float32(1))
    summand = np.where(is_ratio, np.float32(0), shift)
    yesterday = (today - 1) % LEVEL_DAYS  # partly old, partly new: given up
    for name in ("levels", "day_median"):
        ring = records[name][rows]
        shape = (-1, *[1] * (ring.ndim - 1))
        ring = ring * factor.reshape(shape) + summand.reshape(shape)
        ring[:, yesterday] = np.nan
        records[name][rows] = ring


def _note_changes(
    records: Records, levels: Levels, calendar: CivilDay, mads: float, pending: NDArray[np.int64]
) -> None:
    off = levels.seen - levels.expected
    late = medians(off[:, -LAST_SLOTS:], SAME_SIDE)
    by_day = records["day_median"][:, places(calendar.number - 1, MONTH_DAYS, LEVEL_DAYS)]
    middle = medians(by_day, LEAST_DAYS)
    spread = medians(np.abs(by_day - middle[:, None]))
    limit = np.fmax(np.float32(mads) * spread, levels.least)
    side = np.sign(late)
    same = (np.sign(off[:, -SAME_SIDE:]) == side[:, None]).all(axis=1)
    of_week = medians((levels.seen - levels.same_weekday)[:, -LAST_SLOTS:], SAME_SIDE)
    is_new = same & (late * side > limit) & (of_week * side > limit) & ~np.isnan(middle)
    is_new[pending] = False
    rows = np.flatnonzero(is_new)
    before = medians(levels.expected[rows])
    beyond = off[rows] * side[rows][:, None] > (np.abs(late[rows]) / 2)[:, None]
    records["change_runs"][rows] = 1
    records["changed_at_ms"][rows] = _begin_of(beyond, calendar)
    records["changed_before"][rows] = before
    records["changed_after"][rows] = before + late[rows]


def _begin_of(beyond: NDArray[np.bool_], calendar: CivilDay) -> NDArray[np.int64]:
    """Return when the last uninterrupted run of slots at the new level began, in ms since 1970 UTC."""
    broken = ~beyond[:, ::-1]
    length = np.where(broken.any(axis=1), broken.argmax(axis=1), SLOTS_PER_DAY)
    length = np.maximum(length, SAME_SIDE)  # single slots in between do not make it begin later
    slot = SLOTS_PER_DAY - length
    first = np.array(
        [int(np.argmax(calendar.quarters // 2 >= number)) for number in range(SLOTS_PER_DAY)]
    )
    begun: NDArray[np.int64] = calendar.start_ms + QUARTER_MS * first[slot]
    return begun
