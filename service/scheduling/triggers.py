"""When a job is due: times that follow from the trigger alone, not from when a process started.

So the due times are the same after a restart, and for two processes. Daily times are by local time: one
that the change to summer time skips is an hour later, and one that occurs twice counts the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from rules.facts.times import EPOCH

MOST_COUNTED: Final = 1000  # due times that passed; more count as this many
# How far back the latest due time is searched: all our jobs are due at least once a year.
BACK: Final = tuple(timedelta(days=days) for days in (1, 8, 32, 367))


UNITS: Final = tuple(
    (name, timedelta(**{f"{name}s": 1})) for name in ("week", "day", "hour", "minute", "second")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Due again and again, at multiples of an interval since 1970 UTC."""

    interval: timedelta

    def __post_init__(self) -> None:
        """Reject an interval that is not positive.

        Raises:
            ValueError: the interval is zero or negative.
        """
        if self.interval <= timedelta(0):
            raise ValueError("an interval has to be longer than zero")

    def after(self, timestamp: datetime) -> datetime:
        """Return the first due time after a time; aware, UTC."""
        passed = (timestamp - EPOCH) // self.interval
        return EPOCH + (passed + 1) * self.interval

    def __str__(self) -> str:
        return f"every {_words(self.interval)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """Due by local time; fields as APScheduler reads them, days of the week by name."""

    zone: ZoneInfo
    hour: str = "*"
    minute: str = "0"
    weekday: str = "*"  # mon-fri, say: the numbers mean other days than crontab's
    day: str = "*"
    _fields: CronTrigger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the fields.

        Raises:
            ValueError: one of them cannot be read.
        """
        trigger = CronTrigger(
            hour=self.hour,
            minute=self.minute,
            day_of_week=self.weekday,
            day=self.day,
            timezone=self.zone,
        )
        object.__setattr__(self, "_fields", trigger)

    def after(self, timestamp: datetime) -> datetime:
        """Return the first due time after a time; aware, UTC."""
        due = self._next(timestamp)
        while self.hour.isdigit() and due.fold:
            due = self._next(due)
        return due.astimezone(UTC)

    def _next(self, timestamp: datetime) -> datetime:
        later = timestamp.astimezone(UTC) + timedelta(microseconds=1)
        due: datetime = self._fields.get_next_fire_time(None, later)
        return due

    def __str__(self) -> str:
        if self.hour.isdigit() and self.minute.isdigit() and self.weekday == self.day == "*":
            return f"at {int(self.hour):02d}:{int(self.minute):02d} ({self.zone.key})"
        fields = f"{self.minute} {self.hour} {self.day} * {self.weekday}"
        return f"cron {fields} ({self.zone.key})"


Trigger: TypeAlias = Every | Cron


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Due times between two times."""

    last: datetime
    times: int  # never more than `MOST_COUNTED`


def passed(trigger: Trigger, after: datetime, until: datetime) -> Passed | None:
    """Return the due times after a time, up to another one inclusive; None if there are none."""
    last = latest(trigger, until)
    if last is None or last <= after:
        return None
    times = 0
    for due in islice(_following(trigger, after), MOST_COUNTED):
        times += 1
        if due >= last:
            break
    return Passed(last=last, times=times)


def latest(trigger: Trigger, until: datetime) -> datetime | None:
    """Return the last due time until a time, inclusive; None if there was none for a year."""
    if isinstance(trigger, Every):
        return trigger.after(until - trigger.interval)
    for back in BACK:
        last = None
        for due in _following(trigger, until - back):
            if due > until:
                break
            last = due
        if last is not None:
            return last
    return None


def _words(interval: timedelta) -> str:
    """Return an interval in the largest unit that divides it."""
    for name, unit in UNITS:
        count, left = divmod(interval, unit)
        if count and not left:
            return name if count == 1 else f"{count} {name}s"
    return f"{interval.total_seconds():g} seconds"


def _following(trigger: Trigger, timestamp: datetime) -> Iterator[datetime]:
    while True:
        timestamp = trigger.after(timestamp)
        yield timestamp
