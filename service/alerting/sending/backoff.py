"""When a delivery is tried again.

Standard Webhooks' own table waits for hours, which suits bookkeeping: a page that comes two days
late is noise. Ours is dense at first, and ends after a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

STEPS: Final = tuple(timedelta(seconds=seconds) for seconds in (0, 5, 15, 30, 60, 120, 300, 600))
GIVE_UP_AFTER: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What is known of a delivery after an attempt that failed."""

    created_at: datetime  # aware, UTC
    failures: int  # in a row, this one with it; at least 1
    not_before: datetime | None = None  # what the receiver asked for
    is_slow: bool = False  # a person has to mend something first


def next_attempt_at(tried: Tried, now: datetime, chance: float) -> datetime | None:
    """Return when to try again; None once it has been tried for a day.

    `chance` is drawn from [0, 1): the pause is any part of its step, so that what failed together
    does not come back together. What the receiver asked for goes before all this: who asks to wait
    until the day is over is asked once more then, or the first answer would end it.
    """
    last = tried.created_at + GIVE_UP_AFTER
    if tried.not_before is not None:
        return tried.not_before if now < last else None
    timestamp = now + _pause(tried, chance)
    return timestamp if timestamp <= last else None


def _pause(tried: Tried, chance: float) -> timedelta:
    if tried.is_slow:
        return STEPS[-1] * (1 + chance)
    return STEPS[min(tried.failures, len(STEPS) - 1)] * chance
