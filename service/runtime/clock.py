"""The only file that reads the wall clock or sleeps; everything else is given the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

POLL_SECONDS = 0.05
STEP_TOLERANCE: Final = timedelta(seconds=2)  # NTP slews at most 0.5 ms per second


def utc_now() -> datetime:
    """Return the wall-clock time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds on a clock that is never set back; only differences have a meaning."""
    return time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """Both clocks, read at one time."""

    wall: datetime  # aware, UTC
    monotonic_seconds: float


def step_between(before: ClockReading, after: ClockReading) -> timedelta | None:
    """Return by how much the wall clock was set between two readings, negative when set back.

    None within `STEP_TOLERANCE`. Time that the machine slept through counts as a step forward: the
    monotonic clock stood still, and nothing was observed.
    """
    elapsed = timedelta(seconds=after.monotonic_seconds - before.monotonic_seconds)
    step = after.wall - before.wall - elapsed
    return step if abs(step) > STEP_TOLERANCE else None


def wait_until(
    condition: Callable[[], bool], *, timeout_seconds: float, poll_seconds: float = POLL_SECONDS
) -> bool:
    """Poll `condition` until it is true or the time is over; return what it last said."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll_seconds)
    return True


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event so many seconds; return whether it was set."""
    import asyncio  # noqa: PLC0415 - 30 ms of CPU, which a command that reads the clock needs not

    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            return await event.wait()
    except TimeoutError:
        return False


def pause(seconds: float) -> None:
    """Sleep, where only time is waited for (the rate of a load, the interval of rounds)."""
    time.sleep(seconds)
