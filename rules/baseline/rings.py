"""Rings of days: day number modulo the length is a day's place, so that nothing is ever moved."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.state import LEVEL_DAYS, MONTH_DAYS, SCALE_DAYS, STATE, WEEK_DAYS

Records = NDArray[np.void]  # of STATE

_RINGS: Final = {
    "known": WEEK_DAYS,
    "nonzero": WEEK_DAYS,
    "errors": SCALE_DAYS,
    "above": SCALE_DAYS,
    "below": SCALE_DAYS,
    "scale": MONTH_DAYS,
    "maxima": MONTH_DAYS,
    "maxima_below": MONTH_DAYS,
    "drifts": MONTH_DAYS,
    "falls": MONTH_DAYS,
    "levels": LEVEL_DAYS,
    "day_median": LEVEL_DAYS,
}


def places(last_day: int, days: int, length: int) -> NDArray[np.int64]:
    """Return the places of so many days up to and with the last, oldest first."""
    return np.arange(last_day - days + 1, last_day + 1) % length


def catch_up(records: Records, last_day: int) -> None:
    """Empty the places of days that are too old, where runs up to `last_day` were left out."""
    if (records["last_day"] == last_day).all():
        return
    for name, length in _RINGS.items():
        at_place = last_day - (last_day - np.arange(length)) % length
        is_stale = at_place[None, :] > records["last_day"][:, None]
        records[name][is_stale] = np.nan if STATE[name].base.kind == "f" else 0


def same_weekdays(records: Records, name: str, weekday: int) -> NDArray[np.float32]:
    """Return of a ring of 35 days the five of one weekday, as `weekdays` has them: (n, 5, ...)."""
    ring = records[name]
    by_place = ring.reshape(len(ring), LEVEL_DAYS // 7, 7, *ring.shape[2:])
    return by_place[:, :, (weekday + 1) % 7]


def weekdays(records: Records, name: str) -> NDArray[np.float32]:
    """Return a ring of 35 days as (n, 5, 7, ...): five of each weekday, Monday first; no order in time.

    Day number 1 was a Monday, and 35 is a whole number of weeks.
    """
    ring = records[name]
    by_place = ring.reshape(len(ring), LEVEL_DAYS // 7, 7, *ring.shape[2:])
    monday_first = np.arange(1, 8) % 7
    return by_place[:, :, monday_first]
