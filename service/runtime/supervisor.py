"""Keeps the service's tasks alive; the only place that catches every exception.

What was not expected is logged with its traceback, counted, and decided about: a task is started
again after 1 s, 2 s, 4 s, at most a minute, or brings the service down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from service.runtime.events import Event
from service.runtime.log import Log

T = TypeVar("T")

FIRST_DELAY_SECONDS: Final = 1.0
LAST_DELAY_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 600.0  # after so long without dying, the delay begins anew


class OnDeath(StrEnum):
    """What the death of a task means."""

    RESTART = "restart"
    STOP = "stop"  # the service cannot do its work without it


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something that goes on until the service stops; one that returns earlier has failed."""

    name: str
    run: Callable[[], Awaitable[None]]
    on_death: OnDeath = OnDeath.RESTART
    on_died: Callable[[], None] = lambda: None  # called before it is started again; must not block


class Supervisor:
    """Runs tasks and decides when one dies."""

    def __init__(self, log: Log, stop: asyncio.Event, *, monotonic: Callable[[], float]) -> None:
        self._log = log
        self._stop = stop
        self._monotonic = monotonic
        self.restarts: dict[str, int] = {}
        self.failed: str | None = None  # the task that brought the service down

    async def keep(self, task: Task) -> None:
        """Run a task until the service stops."""
        self.restarts.setdefault(task.name, 0)
        delay = FIRST_DELAY_SECONDS
        while not self._stop.is_set():
            began = self._monotonic()
            if await self._run_once(task):
                return
            if task.on_death is OnDeath.STOP:
                self.failed = task.name
                self._stop.set()
                return
            self.restarts[task.name] += 1
            self.attempt(task.name, task.on_died)
            if self._monotonic() - began >= STEADY_SECONDS:
                delay = FIRST_DELAY_SECONDS
            await self._stop_within(delay)
            delay = min(2 * delay, LAST_DELAY_SECONDS)

    def attempt(self, name: str, function: Callable[[], T]) -> T | None:
        """Return what a function returns, None if it raised: for a part that may fail alone."""
        try:
            return function()
        except Exception:  # noqa: BLE001 - the place for it: logged, and the caller decides
            self._log.error(Event.PART_FAILED, part=name, exc_info=True)
            return None

    async def _run_once(self, task: Task) -> bool:
        try:
            await task.run()
        except Exception:  # noqa: BLE001 - the place for it: logged, counted, decided
            self._log.error(Event.TASK_DIED, task=task.name, then=str(task.on_death), exc_info=True)
            return False
        if not self._stop.is_set():
            self._log.error(
                Event.TASK_DIED, task=task.name, then=str(task.on_death), why="it ended"
            )
        return self._stop.is_set()

    async def _stop_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return
