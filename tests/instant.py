"""An event loop that jumps to its next timer, so that tests of waiting do not wait."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and threads only; what a timer would wait is handed to `jump`."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # nothing but a thread can wake it
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._jump(timeout)
        return ready


class InstantLoop(asyncio.SelectorEventLoop):
    """Its clock begins at 0 and moves only where the loop would wait."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self.jump))

    def time(self) -> float:
        """Return the seconds that were jumped over so far."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Let time pass; a thread may do so too while the loop waits for nothing but it."""
        self._now += seconds


def run_instantly(test: Callable[[], Awaitable[T]]) -> T:
    """Run a test's coroutine; `now()` tells the time inside."""

    async def body() -> T:
        return await test()

    with asyncio.Runner(loop_factory=InstantLoop) as runner:
        return runner.run(body())


def now() -> float:
    """Return the time of the loop that runs."""
    return asyncio.get_running_loop().time()
