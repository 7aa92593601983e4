"""The time of an incident: from what led to its alert until it had ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rules.errors import CollectError
from service.terminal.parts import Row
from service.terminal.words import timestamp_of

BEFORE: Final = timedelta(minutes=15)  # what led to an alert
AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when the incident was; both included."""

    begin: datetime
    end: datetime

    def has(self, at: datetime | None) -> bool:
        """Return whether a time is in it."""
        return at is not None and self.begin <= at <= self.end

    def overlaps(self, begin: datetime | None, end: datetime | None) -> bool:
        """Return whether a time from `begin` on until `end` overlaps; None: it has not ended."""
        return begin is not None and begin <= self.end and (end is None or end >= self.begin)


def window_of(alert: Row, now: datetime) -> Window:
    """Return the time of an alert, with what was before it; of one that has not ended, until now."""
    begin, end = timestamp_of(alert.get("active_at")), timestamp_of(alert.get("resolved_at"))
    if begin is None:
        raise CollectError("the alert has no time")
    return Window(begin - BEFORE, now if end is None else min(end + AFTER, now))


def began_at(row: Row) -> datetime | None:
    """Return when what a finding or a loss is about began, at the earliest.

    A loss that is found after the service was down happened after the last observation of its partition.
    """
    evidence = row.get("evidence") or {}
    values = (row.get("since"), row.get("last_observation"), evidence.get("last_observation"))
    times = (timestamp_of(value) for value in values)
    return min((at for at in times if at is not None and at.tzinfo is not None), default=None)
