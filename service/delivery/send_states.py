"""Send state of each receiver: attempts under way, whether it is down, until when it asks to wait.

It is in memory only: the outbox says when each notification is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from service.alerting.notifications.alertmanager import Merged, merge_bodies
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.answers import Failure, Outcome
from service.alerting.sending.sender import Attempt
from service.storage.delivery.outbox import SendCapacity

# While a receiver answers quickly, this many times its concurrency is claimed: a query of the outbox takes
# longer than a quick receiver.
FETCHED: Final = 8
QUICK: Final = timedelta(seconds=1)
DOWN_AFTER: Final = 3  # failures in a row: then one notification alone tries whether it is back
# Failures of the receiver, and not of one notification.
_OF_RECEIVER: Final = frozenset(
    (Failure.TIMEOUT, Failure.CONNECTION, Failure.NAME, Failure.SERVER_ERROR, Failure.TLS)
)
_ASKS_TO_WAIT: Final = frozenset((Failure.RATE_LIMITED, Failure.SERVER_ERROR))


@dataclass(slots=True, kw_only=True)
class ReceiverSendState:
    """One receiver."""

    receiver: Receiver
    max_concurrent: int
    turns: asyncio.Semaphore = field(init=False)  # of those that are sent now
    under_way: int = 0  # sent now, or fetched and soon sent
    is_quick: bool = False
    failures: int = 0  # in a row
    not_before: datetime | None = None  # its Retry-After, for all notifications to it

    def __post_init__(self) -> None:
        self.turns = asyncio.Semaphore(self.max_concurrent)

    @property
    def is_down(self) -> bool:
        """Whether it has failed again and again."""
        return self.failures >= DOWN_AFTER

    def capacity(self, now: datetime) -> SendCapacity | None:
        """Return how much may be sent to it now; None for nothing."""
        if self.not_before is not None and now < self.not_before:
            return None
        most = self.max_concurrent * (FETCHED if self.is_quick else 1)
        free = (1 if self.is_down else most) - self.under_way
        if free <= 0:
            return None
        return SendCapacity(receiver=self.receiver.name, free=free, merge=self._merge)

    def note(self, attempt: Attempt) -> bool:
        """Note an attempt; return whether the receiver is back after it was down."""
        was_down = self.is_down
        self.is_quick = attempt.outcome is Outcome.DELIVERED and attempt.took < QUICK
        if attempt.outcome is Outcome.DELIVERED:
            self.failures, self.not_before = 0, None
            return was_down
        if attempt.failure in _OF_RECEIVER:
            self.failures += 1
        if attempt.failure in _ASKS_TO_WAIT and attempt.not_before is not None:
            self.not_before = attempt.not_before
        return False

    def shift(self, step: timedelta) -> None:
        """Move its Retry-After along with a clock that was set."""
        if self.not_before is not None:
            self.not_before += step

    def _merge(self, older: Iterable[bytes], newest: bytes) -> Merged | None:
        return merge_bodies(self.receiver, list(older), newest)


@dataclass(slots=True)
class ReceiverSendStates:
    """All receivers, by name."""

    by_name: dict[str, ReceiverSendState] = field(default_factory=dict)

    @classmethod
    def of(cls, receivers: Iterable[tuple[Receiver, int]]) -> ReceiverSendStates:
        """Return the send states of receivers, each given with its maximum of concurrent notifications."""
        states = [
            ReceiverSendState(receiver=receiver, max_concurrent=most)
            for receiver, most in receivers
        ]
        return cls({state.receiver.name: state for state in states})

    def rooms(self, now: datetime) -> list[SendCapacity]:
        """Return the send capacity of each receiver that has any now."""
        rooms = (receiver_state.capacity(now) for receiver_state in self.by_name.values())
        return [capacity for capacity in rooms if capacity is not None]

    def shift(self, step: timedelta) -> None:
        """Move times along with a clock that was set."""
        for receiver_state in self.by_name.values():
            receiver_state.shift(step)
