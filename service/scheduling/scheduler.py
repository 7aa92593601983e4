"""The task that wakes jobs: by APScheduler at due times, and by a check at regular intervals.

APScheduler only wakes. It is configured never to drop a due time: the runner decides about late ones, from
the recorded runs. The regular check covers everything else: a database that is back, a machine that slept, a
clock that was set back, after which APScheduler would wait until it has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from service.runtime.clock import ClockReading, step_between
from service.scheduling.runner import Runner
from service.scheduling.triggers import Trigger

FIRST_AFTER_SECONDS: Final = 60.0  # a start has more urgent things to do
OBSERVATION_SECONDS: Final = 30.0


class Scheduler:
    """Wakes the jobs of a runner until the service stops."""

    def __init__(
        self,
        runner: Runner,
        stop: asyncio.Event,
        *,
        clocks: Callable[[], ClockReading],
        first_after_seconds: float = FIRST_AFTER_SECONDS,
        observation_seconds: float = OBSERVATION_SECONDS,
    ) -> None:
        self._runner = runner
        self._stop = stop
        self._clocks = clocks
        self._first_after_seconds = first_after_seconds
        self._observation_seconds = observation_seconds

    async def run(self) -> None:
        """Wake jobs; when the service stops, wait until those that run have ended."""
        try:
            await self._wait(self._first_after_seconds)
            while not self._stop.is_set() and not await self._runner.begin():
                await self._wait(self._observation_seconds)
            if not self._stop.is_set():
                await self._wake()
        finally:
            if self._stop.is_set():  # else it died, and is started again
                await self._runner.close()

    async def _wake(self) -> None:
        scheduler = AsyncIOScheduler(timezone=UTC)
        for job in self._runner.jobs.values():
            scheduler.add_job(
                _considering(self._runner, job.name),
                _Due(job.trigger),
                id=job.name,
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )
        scheduler.start()
        try:
            await self._observe(scheduler)
        finally:
            scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # it ends in a callback

    async def _observe(self, scheduler: AsyncIOScheduler) -> None:
        clocks = self._clocks()
        while not self._stop.is_set():
            await self._wait(self._observation_seconds)
            before, clocks = clocks, self._clocks()
            if step_between(before, clocks) is not None:
                for job in self._runner.jobs.values():
                    due = job.trigger.after(clocks.wall)
                    scheduler.modify_job(job.name, next_run_time=due)
            await self._runner.keep_rest()
            self._runner.observe()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()


class _Due(BaseTrigger):  # type: ignore[misc]  # of a library without types
    """Adapter of our trigger to APScheduler's interface."""

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the first due time after now: the runner decides about those in between."""
        del previous
        return self._trigger.after(now)


def _considering(runner: Runner, name: str) -> Callable[[], object]:
    async def consider() -> None:
        runner.consider(name)

    return consider
