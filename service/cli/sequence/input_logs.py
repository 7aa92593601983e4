"""Logs given on the command line: whether one is a controller's and its time span, so that the advice
does not ask for it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from collectors.broker_log.wording.times import HEAD, time_of
from rules.facts.broker_log import LogEvent, UncleanChange

CONTROLLER: Final = b"[QuorumController id="  # standby controllers log the same changes


@dataclass(slots=True, kw_only=True)
class InputLog:
    """One file, or stdin; `first_at` and `last_at` are None while no line has a time."""

    name: str
    zone: tzinfo = UTC  # of times without one
    is_controllers: bool = False
    first_at: datetime | None = None
    last_at: datetime | None = None

    def see(self, lines: list[bytes]) -> None:
        """Take the next lines, in order."""
        self.is_controllers = self.is_controllers or any(CONTROLLER in line for line in lines)
        self.first_at = self.first_at or self._time(lines)
        self.last_at = self._time(reversed(lines)) or self.last_at

    def covers(self, timestamp: datetime | None) -> bool:
        """Whether a time lies between its lines."""
        if timestamp is None or self.first_at is None or self.last_at is None:
            return False
        return self.first_at <= timestamp <= self.last_at

    def _time(self, lines: Iterable[bytes]) -> datetime | None:
        """Return the first time in the lines."""
        times = (time_of(line[:HEAD].decode(errors="replace"), self.zone) for line in lines)
        return next((at for at in times if at is not None), None)


def describe_no_change(log: InputLog) -> str:
    """Return the sentence that a controller's log shows no unclean change of a partition."""
    times = [at for at in (log.first_at, log.last_at) if at is not None]
    span = " to ".join(f"{at:%Y-%m-%d %H:%M:%S}" for at in times)
    return f"The controller's log, {log.name}, shows no unclean change from {span} UTC"


def controllers_of(
    logs: Iterable[InputLog], others: Iterable[LogEvent], timestamp: datetime | None
) -> InputLog | None:
    """Return a controller's log that covers that time or names the partition; None if there is none."""
    sources = {other.origin.source for other in others if isinstance(other, UncleanChange)}
    return next(
        (
            log
            for log in logs
            if log.name in sources or (log.is_controllers and log.covers(timestamp))
        ),
        None,
    )
