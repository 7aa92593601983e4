"""The task that wakes jobs: at due times, and at regular intervals.

It only wakes: the runner decides about late runs, from the recorded ones. The regular check covers
everything that has no due time: a database that is back, a machine that slept, a clock that was set.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from service.scheduling.runner import Runner

FIRST_AFTER_SECONDS: Final = 60.0  # a start has more urgent things to do
OBSERVATION_SECONDS: Final = 30.0


class Scheduler:
    """Wakes the jobs of a runner until the service stops."""

    def __init__(
        self,
        runner: Runner,
        stop: asyncio.Event,
        *,
        first_after_seconds: float = FIRST_AFTER_SECONDS,
        observation_seconds: float = OBSERVATION_SECONDS,
    ) -> None:
        self._runner = runner
        self._stop = stop
        self._first_after_seconds = first_after_seconds
        self._observation_seconds = observation_seconds

    async def run(self) -> None:
        """Wake jobs; when the service stops, wait until those that run have ended."""
        try:
            await self._wait(self._first_after_seconds)
            while not self._stop.is_set() and not await self._runner.begin():
                await self._wait(self._observation_seconds)
            if not self._stop.is_set():
                await self._observe()
        finally:
            if self._stop.is_set():  # else it died, and is started again
                await self._runner.close()

    async def _observe(self) -> None:
        """Run what is due, at due times and at intervals, until the service stops."""
        while not self._stop.is_set():
            await self._wait(min(self._observation_seconds, self._runner.seconds_to_next_due()))
            self._runner.observe()
            await self._runner.keep_rest()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
