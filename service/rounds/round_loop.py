"""Makes rounds until the service stops: every interval from start to start, early after a leader change.

Alert groups are flushed when they are due, also during a round, however long it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from service.observe.watch import next_due
from service.rounds.pipeline import Pipeline
from service.rounds.round_log import RoundLog
from service.runtime.clock import set_within
from service.runtime.threads import in_thread

REPORT_SECONDS: Final = 1.0  # between checks for due groups: how late a page may be


class RoundLoop:
    """Drives a pipeline until the service stops; a round under way is always finished."""

    def __init__(
        self,
        pipeline: Pipeline,
        log: RoundLog,
        *,
        interval_seconds: float,
        monotonic: Callable[[], float],
        stop: asyncio.Event,
    ) -> None:
        self._pipeline = pipeline
        self._log = log
        self._interval = interval_seconds
        self._monotonic = monotonic
        self._stop = stop
        # Kept here, so that a restarted loop still waits for its next round.
        self._due = float("-inf")

    async def run(self) -> None:
        """Make rounds until the service stops."""
        while not await set_within(self._stop, self._due - self._monotonic()):
            began = self._monotonic()
            self._due = began + self._interval
            result = await in_thread(self._pipeline.make_round, name="round")
            self._due = next_due(
                began,
                self._monotonic(),
                interval_seconds=self._interval,
                early=result.watched.next_is_early,
            )
            self._log.log_round(result)


class ReportingLoop:
    """Has a pipeline flush due alert groups until the service stops."""

    def __init__(
        self, pipeline: Pipeline, *, stop: asyncio.Event, seconds: float = REPORT_SECONDS
    ) -> None:
        self._pipeline = pipeline
        self._stop = stop
        self._seconds = seconds

    async def run(self) -> None:
        """Check every second, and flush in a thread, because the database may block."""
        while not await set_within(self._stop, self._seconds):
            if self._pipeline.has_reports_due():
                await in_thread(self._pipeline.report_due, name="alert_groups")
