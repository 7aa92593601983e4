"""Removes old rows, as a job, and never because of a clock that is far ahead.

The wall clock of a machine that starts, or is repaired, may be years ahead for a while, and by such a
clock everything is old. So it is trusted only if earlier rows agree with it: jobs run every few minutes,
and one that ran about a day ago did so by the same clock. In a database that is new, or was unused for
long, nothing is removed until a day has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from service.runtime.events import Event
from service.runtime.log import Log
from service.scheduling.job import RunContext, Stats
from service.storage.jobs.retention import Kind

DAY: Final = timedelta(days=1)
MOST_IDLE: Final = timedelta(days=8)  # also one that is started once a week
AGREED_AGO: Final = DAY

# Not settings. Bodies may contain more than the rows, and are of no use for long.
KEPT: Final[Mapping[Kind, timedelta]] = {
    Kind.BODIES: DAY,
    Kind.APPLICATION_ERRORS: DAY,  # since they were last seen, as ended sequence events
    Kind.IDEMPOTENCY: DAY,  # as the API promises
    Kind.DELIVERIES: 30 * DAY,
    Kind.ALERTS: 30 * DAY,  # since they ended
    Kind.ACKNOWLEDGEMENTS: 30 * DAY,  # of alerts that are gone
    Kind.CLOSINGS: 30 * DAY,
    Kind.SILENCES: 90 * DAY,  # since they ended
    Kind.JOB_RUNS: 90 * DAY,
}
# For as long as operators search findings.
WITH_HISTORY: Final = (
    Kind.TRANSITIONS,
    Kind.FINDINGS,
    Kind.LOG_LINES,
    Kind.LOG_STREAMS,
    Kind.CHANGE_EVENTS,
    Kind.ALERT_STEPS,
)


class RunsBefore(Protocol):
    """The record of earlier runs of the cluster's jobs; every call may raise StoreError."""

    def ran_before(self, timestamp: datetime, /) -> datetime | None:
        """Return when the last run of any job until a time began."""


class OldRows(RunsBefore, Protocol):
    """Removes old rows; every call may raise StoreError."""

    def remove(
        self, limits: Mapping[Kind, datetime], now: datetime, is_over: Callable[[], bool], /
    ) -> Stats:
        """Remove rows older than the limit of their kind that are no other service's; return how many."""


@dataclass(frozen=True, slots=True)
class ClockError:
    """Why the clock is not trusted."""

    why: str
    is_wrong: bool  # it seems to be far ahead; otherwise there is nothing to hold it against


def clock_error(runs: RunsBefore, now: datetime) -> ClockError | None:
    """Return why this clock cannot be trusted; None: it can.

    Raises:
        StoreError: the database is away.
    """
    last = runs.ran_before(now - AGREED_AGO)
    if last is None:
        why = "no job ran a day ago: there is nothing to check the clock against"
        return ClockError(why, is_wrong=False)
    if now - last > MOST_IDLE:
        why = f"the clock is {(now - last).days} days ahead of the last job before today"
        return ClockError(why, is_wrong=True)
    return None


class Retention:
    """The work of a job."""

    def __init__(self, rows: OldRows, keep_findings: timedelta, log: Log) -> None:
        """`keep_findings`: how long findings are kept, a setting."""
        self._rows = rows
        self._kept = {**dict.fromkeys(WITH_HISTORY, keep_findings), **KEPT}
        self._log = log

    def run(self, context: RunContext) -> Stats:
        """Remove old rows if the clock can be trusted; return how many of each kind.

        Raises:
            StoreError: the database is away or rejects the statement.
        """
        now = context.now
        error = clock_error(self._rows, now)
        if error is not None:
            if error.is_wrong:
                self._log.warning(Event.RETENTION_SKIPPED, why=error.why, now=now.isoformat())
            return {"skipped": error.why}
        limits = {kind: now - keep for kind, keep in self._kept.items()}
        removed = self._rows.remove(limits, now, context.is_over)
        return {kind: count for kind, count in removed.items() if count}
