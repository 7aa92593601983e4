"""The only file that reads the wall clock or sleeps; everything else is given the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

POLL_SECONDS = 0.05


def utc_now() -> datetime:
    """Return the wall-clock time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds on a clock that is never set back; only differences have a meaning."""
    return time.monotonic()


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


def pause(seconds: float) -> None:
    """Sleep, where time itself is what is awaited (a load's pace, the interval of rounds)."""
    time.sleep(seconds)
