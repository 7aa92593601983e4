"""When a delivery is tried again.

The schedule of Standard Webhooks waits for hours, which suits bookkeeping, but a page that comes two
days late is noise. Ours is dense at first, and ends after a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

STEPS: Final = tuple(timedelta(seconds=seconds) for seconds in (0, 5, 15, 30, 60, 120, 300, 600))
GIVE_UP_AFTER: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDelivery:
    """The state of a delivery after a failed attempt."""

    created_at: datetime  # aware, UTC
    failures: int  # in a row, this one with it; at least 1
    not_before: datetime | None = None  # from the receiver's Retry-After
    is_slow: bool = False  # a person has to repair something first


def next_attempt_at(tried: FailedDelivery, now: datetime, chance: float) -> datetime | None:
    """Return when to try again; None once it has been tried for a day.

    `chance` is drawn from [0, 1): the pause is that part of its step, so that deliveries that failed
    together are not retried together. The receiver's `not_before` has precedence: it is honoured even
    if it lies after that day, because otherwise the first answer could end the delivery.
    """
    last = tried.created_at + GIVE_UP_AFTER
    if tried.not_before is not None:
        return tried.not_before if now < last else None
    timestamp = now + _pause(tried, chance)
    return timestamp if timestamp <= last else None


def _pause(tried: FailedDelivery, chance: float) -> timedelta:
    if tried.is_slow:
        return STEPS[-1] * (1 + chance)
    return STEPS[min(tried.failures, len(STEPS) - 1)] * chance
