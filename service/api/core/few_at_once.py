"""How the HTTP API calls what blocks or computes for long: in threads, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from service.api.core.problems import OverloadError, TooLateError

# Fewer than the pool has connections: rounds store through it too.
DATABASE_CALLS_AT_ONCE: Final = 3
WAITING_CALLS: Final = 16  # further calls are rejected at once
CALL_SECONDS: Final = 10.0  # waiting included
MAX_REST_SECONDS: Final = 2.0

T = TypeVar("T")


class InThread(Protocol):
    """Calls a function that blocks, away from the event loop."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return what the function returns, or raise what it raises."""


class FewAtOnce:
    """Lets a few calls run at a time; some others wait for their turn, none for long.

    A hanging database would otherwise block a thread per request, until none is left for requests
    that need no database. Threads that compute would take turns with the event loop, which would wait for
    each of them.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        in_thread: InThread,
        limit: int = DATABASE_CALLS_AT_ONCE,
        *,
        queue: int = WAITING_CALLS,
        seconds: float = CALL_SECONDS,
        what: str = "the database",
        rests: bool = False,
    ) -> None:
        """`what` is waited for, in the words of a message.

        With `rests` a call is followed by a rest of as long as it took: calls that compute take half of the
        time at most, and less the busier the process is with what others wait for.
        """
        self._in_thread = in_thread
        self._free = asyncio.Semaphore(limit)
        self._queue = queue
        self._waiting = 0
        self._seconds = seconds
        self._what = what
        self._rests = rests

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Wait for a turn, then call in a thread.

        Raises:
            ProblemError: too many wait already; `TooLateError`: there was no answer in time.
        """
        if self._waiting >= self._queue:
            raise OverloadError(f"too many requests wait for {self._what}")
        try:
            async with asyncio.timeout(self._seconds):
                await self._turn()
                call = asyncio.create_task(self._call(function))
                call.add_done_callback(_retrieve)  # what nobody waits for any more is no news
                return await asyncio.shield(call)
        except TimeoutError as exc:
            raise TooLateError(f"{self._what} did not answer in time") from exc

    async def _turn(self) -> None:
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def _call(self, function: Callable[[], T]) -> T:
        """Call, and hold the slot until the thread ends, even when no caller waits any more."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self._in_thread(function)
        finally:
            if self._rests:
                rest = min(loop.time() - began, MAX_REST_SECONDS)
                loop.call_later(rest, self._free.release)
            else:
                self._free.release()


def _retrieve(call: asyncio.Task[T]) -> None:
    """Mark an error as handled, which asyncio would log otherwise."""
    if not call.cancelled():
        call.exception()
