"""One series over many scrapes: its increases, their times, and since when it exists.

A counter that went down was reset by a restart of its process, and counts from zero; what a process
counted before it was first seen is unknown. Times are microseconds on the monotonic clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from rules.facts.scrapes import RISES_KEPT, Rise
from rules.facts.times import EPOCH, SECOND_US

MAX_RISES: Final = 64  # of one series; at the usual interval 60 fit into the time they are kept
# Whole answers without it, then it is gone: one may have been cut short unnoticed.
MISSES: Final = 2
# Likewise, answers that were not whole: else an old series would stay for ever.
MISSES_CUT: Final = 20
# A client's own rates are averages over up to two samples of 30 s.
RATE_WINDOW_US: Final = 60 * SECOND_US
KEPT_US: Final = round(RISES_KEPT.total_seconds() * SECOND_US)
# A series that is back within a day goes on from where it was: it may have been hidden, and what it
# counted before must not be reported as new.
BASE_KEPT_US: Final = 24 * 3600 * SECOND_US


def wall(timestamp_us: int) -> datetime:
    """Return microseconds since 1970 as a time, aware, UTC."""
    return EPOCH + timedelta(microseconds=timestamp_us)


@dataclass(frozen=True, slots=True)
class ScrapeTime:
    """When a scrape began and ended: its values are of some time in between."""

    began_us: int
    ended_us: int


@dataclass(slots=True)
class RiseAt:
    """A rise between two times; without a count it comes from a rate."""

    since_us: int
    until_us: int
    count: int | None
    _rise: tuple[int, Rise] | None = None  # as it was returned last, and for which clock

    def at(self, ahead_us: int) -> Rise:
        """Return it by the wall clock; the same object again, because it is reported many times."""
        if self._rise is None or self._rise[0] != ahead_us:
            since, until = wall(self.since_us + ahead_us), wall(self.until_us + ahead_us)
            self._rise = ahead_us, Rise(since=since, until=until, count=self.count)
        return self._rise[1]


@dataclass(slots=True)
class SeriesHistory:
    """The remembered values and rises of one series."""

    value: float
    seen: ScrapeTime  # the latest answer that had it
    first_us: int  # when it was first seen
    increase: int | None = None  # between the last two answers that had it
    since_us: int | None = None
    missed: int = 0  # whole answers since then, all without it
    missed_cut: int = 0  # likewise, answers that were not whole
    rises: deque[RiseAt] = field(default_factory=deque)

    @property
    def is_gone(self) -> bool:
        """Whether it is not there any more."""
        return self.missed >= MISSES or self.missed_cut >= MISSES_CUT

    @property
    def rate(self) -> float | None:
        """Return the increase per second."""
        if self.increase is None or self.since_us is None:
            return None
        return self.increase * SECOND_US / max(self.seen.ended_us - self.since_us, 1)

    def next_total(self, value: float, now: ScrapeTime, *, lag_us: int) -> None:
        """Take the next value of a counter."""
        before = 0.0 if value < self.value else self.value
        self._rose(round(value) - round(before), self.seen.began_us, now, lag_us)
        self._note_value(value, now)

    def first_total(self, since_us: int, now: ScrapeTime, *, lag_us: int) -> None:
        """Take all of a counter's first value as an increase: it was not there at `since_us`."""
        self._rose(round(self.value), since_us, now, lag_us)

    def next_rate(self, value: float, now: ScrapeTime) -> None:
        """Take the next value of a rate."""
        self._note_value(value, now)
        if value > 0:
            since = now.began_us - RATE_WINDOW_US
            self._append(RiseAt(since, now.ended_us, None))

    def miss(self, *, is_whole: bool) -> None:
        """Note that an answer lacks it."""
        if is_whole:
            self.missed += 1
        else:
            self.missed_cut += 1

    def forget(self, now_us: int) -> None:
        """Forget rises that are too old to be reported."""
        while self.rises and now_us - self.rises[0].until_us > KEPT_US:
            self.rises.popleft()

    def is_reported(self, now_us: int) -> bool:
        """Whether anything of it is still reported."""
        return not self.is_gone or (
            len(self.rises) > 0 and now_us - self.rises[-1].until_us <= KEPT_US
        )

    def _rose(self, increase: int, since_us: int, now: ScrapeTime, lag_us: int) -> None:
        self.increase, self.since_us = increase, since_us
        if increase > 0:
            self._append(RiseAt(since_us - lag_us, now.ended_us, increase))

    def _append(self, rise: RiseAt) -> None:
        self.rises.append(rise)
        if len(self.rises) > MAX_RISES:  # the two oldest become one: less exact, and none is lost
            first, second = self.rises.popleft(), self.rises.popleft()
            count = None if second.count is None else (first.count or 0) + second.count
            self.rises.appendleft(RiseAt(first.since_us, second.until_us, count))

    def _note_value(self, value: float, now: ScrapeTime) -> None:
        if self.is_gone:
            self.first_us = now.began_us
        self.value, self.seen = value, now
        self.missed = self.missed_cut = 0
