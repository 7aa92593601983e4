"""Makes rounds for ever: every interval from start to start, early after a leader change.

Between the rounds, however long one takes, alerts are told when their groups are due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from service.observe.watch import next_due
from service.rounds.pipeline import Pipeline
from service.rounds.round_log import RoundLog
from service.runtime.threads import in_thread

TELLING_SECONDS: Final = 1.0  # between observes what is due: what a page may be late by


class RoundLoop:
    """Drives a pipeline until it is told to stop; the round that runs is always finished."""

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
        self._due = float("-inf")  # kept here: a loop that was restarted does not hurry

    async def run(self) -> None:
        """Make rounds until the service stops."""
        while not await self._stopped_before_next():
            began = self._monotonic()
            self._due = began + self._interval
            made = await in_thread(self._pipeline.make_round, name="round")
            self._due = next_due(
                began,
                self._monotonic(),
                interval_seconds=self._interval,
                early=made.watched.next_is_early,
            )
            self._log.tell(made)

    async def _stopped_before_next(self) -> bool:
        wait = max(self._due - self._monotonic(), 0.0)
        try:
            async with asyncio.timeout(wait):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True


class ReportingLoop:
    """Has a pipeline tell what is due, until it is told to stop."""

    def __init__(
        self, pipeline: Pipeline, *, stop: asyncio.Event, seconds: float = TELLING_SECONDS
    ) -> None:
        self._pipeline = pipeline
        self._stop = stop
        self._seconds = seconds

    async def run(self) -> None:
        """Observation every second or so, and tell in a thread, because the database may hold it up."""
        while not await self._stopped_within(self._seconds):
            if self._pipeline.has_reports_due():
                await in_thread(self._pipeline.report_due, name="alert_groups")

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True
