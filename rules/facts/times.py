"""Times as whole numbers: microseconds since 1970-01-01 UTC, as memory and checkpoints keep them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999; no later time can be written out
SECOND_US: Final = 1_000_000
# Microseconds by which a broker's clock, as seen in its log lines, may differ from ours: machines
# synchronised by NTP are well within.
CLOCKS_AGREE_US: Final = 2_000_000


def time_of(timestamp_us: int) -> datetime:
    """Return a time, aware, UTC."""
    return EPOCH + timestamp_us * MICROSECOND


def iso_time(timestamp_us: int) -> str:
    """Return a time in ISO 8601, with milliseconds, as evidence has it."""
    return time_of(timestamp_us).isoformat(timespec="milliseconds")


def iso_time_or_none(timestamp_us: int | None) -> str | None:
    """Return a time as evidence has it; None where there is none."""
    return None if timestamp_us is None else iso_time(timestamp_us)


def change_if_set(timestamp_us: int | None, change: Callable[[int], int]) -> int | None:
    """Return a changed time; None where there is none."""
    return None if timestamp_us is None else change(timestamp_us)
