"""Which logs were given: a controller's, and of which time, so that nobody is asked for it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from collectors.broker_log.wording.times import HEAD, time_of
from rules.facts.broker_log import LogEvent, UncleanChange

CONTROLLER: Final = b"[QuorumController id="  # standby ones tell the same changes


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLog:
    """One file, or what was piped; `first_at` and `last_at` are None where no line tells a time."""

    name: str
    is_controllers: bool
    first_at: datetime | None
    last_at: datetime | None

    def covers(self, timestamp: datetime | None) -> bool:
        """Whether a time lies between its lines."""
        if timestamp is None or self.first_at is None or self.last_at is None:
            return False
        return self.first_at <= timestamp <= self.last_at


def describe_no_change(log: GivenLog) -> str:
    """Return what a controller's log says of a partition of which it has no line."""
    times = [at for at in (log.first_at, log.last_at) if at is not None]
    span = " to ".join(f"{at:%Y-%m-%d %H:%M:%S}" for at in times)
    return f"That of the controller, {log.name}, tells of no unclean change from {span} UTC"


class LogReading:
    """Watches the lines of one log go by."""

    def __init__(self, name: str, zone: tzinfo) -> None:
        self._name = name
        self._zone = zone
        self._is_controllers = False
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None

    def see(self, lines: list[bytes]) -> None:
        """Observe some lines, in their order."""
        if not self._is_controllers:
            self._is_controllers = any(CONTROLLER in line for line in lines)
        if self._first_at is None:
            self._first_at = self._time(lines)
        self._last_at = self._time(reversed(lines)) or self._last_at

    @property
    def given(self) -> GivenLog:
        """Return what was seen of it."""
        return GivenLog(
            name=self._name,
            is_controllers=self._is_controllers,
            first_at=self._first_at,
            last_at=self._last_at,
        )

    def _time(self, lines: Iterable[bytes]) -> datetime | None:
        """Return the first time that lines tell."""
        times = (time_of(line[:HEAD].decode(errors="replace"), self._zone) for line in lines)
        return next((at for at in times if at is not None), None)


def controllers_of(
    logs: Iterable[GivenLog], others: Iterable[LogEvent], timestamp: datetime | None
) -> GivenLog | None:
    """Return a controller's log of that time, or one that tells of the partition; None: none."""
    telling = {other.origin.source for other in others if isinstance(other, UncleanChange)}
    return next(
        (
            log
            for log in logs
            if log.name in telling or (log.is_controllers and log.covers(timestamp))
        ),
        None,
    )
