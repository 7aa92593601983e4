"""The expected value: a constant, a daily or a weekly profile, whichever was the best recently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import PROFILES, Float32s, Profile
from rules.baseline.civil import SLOTS_PER_DAY, CivilDay
from rules.baseline.clockface import FACE, INNER, of_week, wrap_day
from rules.baseline.order import medians, medians_of_days
from rules.baseline.rings import Records, places, weekdays
from rules.baseline.state import LEVEL_DAYS

CONSTANT_DAYS: Final = 7
DAILY_DAYS: Final = 10
LEAST_DAYS: Final = 3  # of the daily profile; of errors, for a choice
LEAST_SLOTS: Final = 4  # of a day, for its errors
LEAST_WEEKDAYS: Final = 2
WEEKLY_FROM_DAYS: Final = 14  # since the first day

CONSTANT: Final = PROFILES.index(Profile.CONSTANT)
DAILY: Final = PROFILES.index(Profile.DAILY)
WEEKLY: Final = PROFILES.index(Profile.WEEKLY)
# In the order of the state's errors: simple ones first.
CANDIDATES: Final = (CONSTANT, DAILY, WEEKLY)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What each profile expects, by the days up to one; gaps are filled by the simpler profile."""

    constant: Float32s  # (n,)
    daily: Float32s  # (n, 48)
    week: Float32s  # (n, 7, 48), Monday first
    usable: NDArray[np.bool_]  # (n, 3): enough days are known to choose it
    tried: NDArray[np.bool_]  # (n, 3): enough to see how far off it would be

    def faces(self, weekday: int) -> tuple[Float32s, Float32s, Float32s]:
        """Return the face of a day by each candidate."""
        constant = np.repeat(self.constant[:, None], FACE, axis=1)
        return constant, wrap_day(self.daily), of_week(self.week, weekday)

    def face(self, profile: NDArray[np.uint8], weekday: int) -> Float32s:
        """Return the face of a day by the profile of each series; NaN where it has none."""
        faces = np.full((len(profile), FACE), np.nan, np.float32)
        for code, face in zip(CANDIDATES, self.faces(weekday), strict=True):
            np.copyto(faces, face, where=(profile == code)[:, None])
        return faces


def candidates(records: Records, last_day: int) -> Candidates:
    """Return what is expected after the days up to the last.

    Constant: the median of 7 daily medians. Daily: the median per slot of 10 days. Weekly: the same of
    the five same weekdays.
    """
    by_day = records["day_median"]
    recent = medians(by_day[:, places(last_day, CONSTANT_DAYS, LEVEL_DAYS)])
    constant = np.where(np.isnan(recent), medians(np.ascontiguousarray(by_day)), recent)
    levels = records["levels"][:, places(last_day, DAILY_DAYS, LEVEL_DAYS)]
    daily = medians_of_days(levels)
    daily = np.where(np.isnan(daily), constant[:, None], daily)
    of_weekday = weekdays(records, "levels")
    week = medians_of_days(of_weekday)
    week = np.where(np.isnan(week), daily[:, None, :], week)
    usable, tried = _usable(records, levels, of_weekday, last_day)
    return Candidates(constant, daily, week, usable, tried)


def _usable(
    records: Records, levels: Float32s, of_weekday: Float32s, last_day: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which candidates may be chosen, and which may be tried.

    A weekly profile is tried from its second week on, so that it can be chosen as soon as it may.
    """
    days = _days_known(levels)
    same = _days_known(of_weekday[:, :, last_day % 7])  # of the weekday that comes
    age = last_day + 1 - records["first_day"]
    usable = np.empty((len(records), 3), np.bool_)
    usable[:, 0] = ~np.isnan(records["day_median"]).all(axis=1)
    usable[:, 1] = usable[:, 0] & (days >= LEAST_DAYS)
    usable[:, 2] = usable[:, 1] & (same >= LEAST_WEEKDAYS) & (age >= WEEKLY_FROM_DAYS)
    tried = usable.copy()
    tried[:, 2] = usable[:, 1] & (same >= 1)
    return usable, tried


def _days_known(levels: Float32s) -> NDArray[np.int64]:
    """Return on how many days any slot is known: (n, days, 48) becomes (n,)."""
    days: NDArray[np.int64] = np.count_nonzero(~np.isnan(levels).all(axis=2), axis=1)
    return days


def choose_profiles(records: Records, usable: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the profile of each series: the least mean error over the days on which all are known.

    The errors are those of 14 days; a candidate takes part from its third on. With fewer the daily
    profile is taken if it is usable, else the constant. Of equal ones the simpler wins.
    """
    errors = np.ascontiguousarray(records["errors"])  # (n, 14, 3)
    takes_part = usable & (np.count_nonzero(~np.isnan(errors), axis=1) >= LEAST_DAYS)
    in_common = ~(np.isnan(errors) & takes_part[:, None, :]).any(axis=2)
    total = np.zeros((len(errors), 3))
    for day in range(errors.shape[1]):  # one by one: the order of a sum is part of the result
        total += np.where(in_common[:, day, None], errors[:, day], 0)
    total = np.where(takes_part, total, np.inf)
    best = np.asarray(CANDIDATES)[total.argmin(axis=1)]
    fallback = np.where(usable[:, 1], DAILY, np.where(usable[:, 0], CONSTANT, 0))
    is_compared = takes_part.any(axis=1) & in_common.any(axis=1) & takes_part[:, 1]
    return np.where(is_compared, best, fallback).astype(np.uint8)


def keep_errors(records: Records, before: Candidates, seen: Float32s, calendar: CivilDay) -> None:
    """Store how far each candidate would have been off: the mean over the slots of |level - expected|.

    A mean, because a median over a day does not see a batch job that runs for less than half of it; unusual
    samples add about the same to all candidates.
    """
    is_present = ~np.isnan(seen)
    slots = np.count_nonzero(is_present, axis=1)
    place = calendar.number % records["errors"].shape[1]
    for column, face in enumerate(before.faces(calendar.weekday)):
        off = np.where(is_present, np.abs(seen - face[:, INNER]), 0)
        # One by one, as `cumsum` adds: the order of a sum is part of the result.
        total = np.cumsum(off, axis=1, dtype=np.float64)[:, -1]
        is_reported = before.tried[:, column] & (slots >= LEAST_SLOTS)
        error = np.divide(total, slots, out=np.full(len(seen), np.nan), where=is_reported)
        records["errors"][:, place, column] = error


def slots_of(profile: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return how many slots a profile has."""
    return np.asarray([0, SLOTS_PER_DAY, SLOTS_PER_DAY, 7 * SLOTS_PER_DAY], np.int32)[profile]
