"""Civil days: which half hour of the wall clock a sample belongs to, in an IANA time zone.

A civil day is [local midnight, next local midnight), 23 to 25 hours. It is cut into quarters of an hour:
whole ones, because the offsets of all zones in use are multiples of 15 minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

SLOTS_PER_DAY: Final = 48
SLOTS_PER_WEEK: Final = 7 * SLOTS_PER_DAY
QUARTER_MS: Final = 15 * 60 * 1000
BEFORE_TRANSITION: Final = timedelta(hours=24)
AFTER_TRANSITION: Final = timedelta(days=7)  # until half of a daily profile has seen it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CivilDay:
    """One civil day and the place of each of its quarters on the wall clock."""

    day: date
    zone: str
    start_ms: int  # ms since 1970-01-01 UTC
    end_ms: int  # excluded
    quarters: NDArray[np.int64]  # of the wall clock, 0 to 95, of each elapsed quarter of an hour
    is_near_transition: NDArray[
        np.bool_
    ]  # of each elapsed quarter: the clocks have changed or will

    @property
    def number(self) -> int:
        """Days since 0001-01-01: counts on over transitions."""
        return self.day.toordinal()

    @property
    def weekday(self) -> int:
        """Monday is 0."""
        return self.day.weekday()

    def samples(self, step_ms: int) -> int:
        """Return how many samples the day has on a grid.

        Raises:
            ValueError: the step does not divide a quarter of an hour.
        """
        if step_ms <= 0 or QUARTER_MS % step_ms:
            raise ValueError(f"a step of {step_ms} ms does not divide a quarter of an hour")
        return (self.end_ms - self.start_ms) // step_ms

    def slots(self, step_ms: int) -> NDArray[np.int64]:
        """Return the slot of the wall clock, 0 to 47, of every sample: shape (samples,)."""
        return np.repeat(self.quarters // 2, self.samples(step_ms) // len(self.quarters))


@lru_cache(maxsize=128)
def civil_day(day: date, zone: str) -> CivilDay:
    """Return a day in a zone.

    Raises:
        ValueError: there is no such zone.
    """
    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, OSError) as exc:
        raise ValueError(f"no such time zone: {zone}") from exc
    start, end = _midnight(day, place), _midnight(day + timedelta(days=1), place)
    timestamps = [
        start + timedelta(milliseconds=QUARTER_MS * number)
        for number in range(int((end - start) / timedelta(milliseconds=QUARTER_MS)))
    ]
    quarters = np.array(
        [_quarter(timestamp.astimezone(place)) for timestamp in timestamps], np.int64
    )
    is_near = np.array([_is_near(timestamp, place) for timestamp in timestamps], np.bool_)
    quarters.flags.writeable = is_near.flags.writeable = False
    return CivilDay(
        day=day,
        zone=zone,
        start_ms=_ms(start),
        end_ms=_ms(end),
        quarters=quarters,
        is_near_transition=is_near,
    )


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the first time of a day: where midnight is skipped, the time of the transition."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _ms(timestamp: datetime) -> int:
    return (timestamp - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _quarter(local: datetime) -> int:
    return 4 * local.hour + local.minute // 15


def _is_near(timestamp: datetime, zone: ZoneInfo) -> bool:
    before, after = timestamp - AFTER_TRANSITION, timestamp + BEFORE_TRANSITION
    return before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()
