"""The grid of a civil day's samples, and what the clock on the wall shows at each of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from rules.baseline.civil import civil_day

COARSE_MS: Final = 300_000  # traffic is drawn for every five minutes, and interpolated
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_HOURS: Final = 168
EPOCH_HOUR_OF_WEEK: Final = 72  # 1970 began on a Thursday; weeks begin on Monday


@dataclass(frozen=True, slots=True, kw_only=True)
class DayGrid:
    """The samples of a civil day: 23 to 25 hours; sample i is taken at start_ms + i * step_ms."""

    day: date
    start_ms: int  # ms since 1970-01-01 UTC
    step_ms: int
    count: int

    @property
    def step_seconds(self) -> float:
        """Return the time between two samples."""
        return self.step_ms / 1000

    @property
    def end_ms(self) -> int:
        """Return the day's end, excluded."""
        return self.start_ms + self.count * self.step_ms

    @property
    def times_ms(self) -> NDArray[np.int64]:
        """Return the time of each sample."""
        return self.start_ms + np.arange(self.count, dtype=np.int64) * self.step_ms

    @property
    def coarse_ms(self) -> NDArray[np.int64]:
        """Return the coarse points of the day, both its ends included."""
        return np.arange(self.start_ms, self.end_ms + 1, COARSE_MS, dtype=np.int64)

    def share(self, start_ms: int, end_ms: int) -> tuple[slice, NDArray[np.float64]]:
        """Return the samples whose step before them lies in a stretch of time, and how much of it."""
        first = np.clip((start_ms - self.start_ms) / self.step_ms + 1, 0, self.count)
        last = np.clip((end_ms - self.start_ms) / self.step_ms + 1, 0, self.count)
        where = slice(int(np.floor(first)), int(np.ceil(last)))
        index = np.arange(where.start, where.stop)
        return where, np.clip(np.minimum(index + 1, last) - np.maximum(index, first), 0, 1)

    def taken(self, start_ms: int, end_ms: int) -> slice:
        """Return the samples that are taken in [start_ms, end_ms)."""
        first, last = (-(-(ms - self.start_ms) // self.step_ms) for ms in (start_ms, end_ms))
        return slice(min(max(first, 0), self.count), min(max(last, 0), self.count))


def day_grid(day: date, zone: str, step_ms: int) -> DayGrid:
    """Return the grid of a civil day; the step divides five minutes."""
    civil = civil_day(day, zone)
    count = civil.samples(step_ms)
    return DayGrid(day=day, start_ms=civil.start_ms, step_ms=step_ms, count=count)


def civil_ms(day: date, minute: int, zone: str) -> int:
    """Return when a clock shows a minute of the day; one that is left out comes an hour later."""
    at = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=ZoneInfo(zone))
    return round(at.timestamp() * 1000)


def hours_of_week(times_ms: NDArray[np.int64], zone: str) -> NDArray[np.float64]:
    """Return the civil hour of the week, 0 to 168 from Monday's midnight on."""
    local = times_ms + _offsets_ms(times_ms, zone)
    hours: NDArray[np.float64] = (local / HOUR_MS + EPOCH_HOUR_OF_WEEK) % WEEK_HOURS
    return hours


def _offsets_ms(times_ms: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Return how far a zone is ahead of UTC; zones change at full quarters of an hour."""
    quarters, place = np.unique(times_ms // (HOUR_MS // 4), return_inverse=True)
    offsets = [_offset_ms(int(quarter) * (HOUR_MS // 4), zone) for quarter in quarters]
    return np.array(offsets, dtype=np.int64)[place]


def _offset_ms(at_ms: int, zone: str) -> int:
    at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    offset = at.utcoffset() or timedelta()
    return round(offset.total_seconds() * 1000)


def clock_changes(start_ms: int, end_ms: int, zone: str) -> list[int]:
    """Return when the clocks of a zone are changed within [start_ms, end_ms)."""
    times = np.arange(start_ms, end_ms, HOUR_MS // 2, dtype=np.int64)
    changed = np.flatnonzero(np.diff(_offsets_ms(times, zone))) + 1
    return [int(times[at]) for at in changed]
