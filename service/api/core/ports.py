"""What the HTTP API needs from the rest of the service; nothing here queries Kafka.

Only `History`, `Inbox`, `TokenChecker` and `AdminServices` query a database, all through
`FewAtOnce`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from service.api.core.admin_services import AdminServices
from service.api.core.problems import TooLateError, unavailable
from service.metrics.exposition import Exposition
from service.observe.log_submissions import Delivery, Rejection
from service.rounds.latest import Latest, ServiceState
from service.storage.findings.findings import StoredTransition
from service.storage.findings.history import FindingFilter, PastFinding
from service.storage.rounds.inbox import Counts
from service.storage.tokens.tokens import Grant

# Fewer than the pool has connections: rounds store through it too.
DATABASE_CALLS_AT_ONCE: Final = 3
WAITING_CALLS: Final = 16  # further calls are rejected at once
CALL_SECONDS: Final = 10.0  # waiting included

T = TypeVar("T")


class InThread(Protocol):
    """Calls a function that blocks, away from the event loop."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return what the function returns, or raise what it raises."""


class Log(Protocol):
    """The log of unexpected errors."""

    def error(self, event: str, /, *args: Any, **fields: Any) -> Any:
        """Write one event."""


class TokenChecker(Protocol):
    """Verifies the secrets of API tokens."""

    def verify(self, secret: str) -> Grant | None:
        """Return the grant of a secret, None if it is not valid; StoreError while that is unknown."""


class History(Protocol):
    """Stored findings; every call may raise StoreError."""

    def page(self, filters: FindingFilter, limit: int) -> list[PastFinding]:
        """Return findings, newest first."""

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        """Return the newest finding of a rule whose labels' hash begins with `hash_begins`."""

    def transitions(self, finding: int) -> Sequence[StoredTransition]:
        """Return the last transitions of a finding, oldest first."""


class Inbox(Protocol):
    """Accepts log lines of brokers."""

    def accept(self, delivery: Delivery, /) -> Counts | Rejection:
        """Store a delivery or return why it is rejected; StoreError while the database is away."""


class FewAtOnce:
    """Lets a few calls run at a time; some others wait for their turn, none for long.

    A hanging database would otherwise block a thread per request, until none is left for requests
    that need no database.
    """

    def __init__(
        self,
        in_thread: InThread,
        limit: int = DATABASE_CALLS_AT_ONCE,
        *,
        queue: int = WAITING_CALLS,
        seconds: float = CALL_SECONDS,
    ) -> None:
        self._in_thread = in_thread
        self._free = asyncio.Semaphore(limit)
        self._queue = queue
        self._waiting = 0
        self._seconds = seconds

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Wait for a turn, then call in a thread.

        Raises:
            ProblemError: too many wait already; `TooLateError`: there was no answer in time.
        """
        if self._waiting >= self._queue:
            raise unavailable("too many requests wait for the database")
        try:
            async with asyncio.timeout(self._seconds):
                await self._turn()
                return await asyncio.shield(asyncio.ensure_future(self._call(function)))
        except TimeoutError as exc:
            raise TooLateError("the database did not answer in time") from exc

    async def _turn(self) -> None:
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def _call(self, function: Callable[[], T]) -> T:
        """Call, and hold the slot until the thread ends, even when no caller waits any more."""
        try:
            return await self._in_thread(function)
        finally:
            self._free.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of all answers."""

    latest: Latest
    exposition: Exposition
    history: History
    utc_now: Callable[[], datetime]
    in_thread: InThread
    in_database: InThread  # calls of `history`, few at once
    inbox: Inbox
    # Calls of `inbox`, one at a time: they are serialised by the database anyway, and a decoded body
    # is many times its size.
    ingesting: InThread
    admin: AdminServices  # its calls go through `in_database`

    @property
    def state(self) -> ServiceState:
        """Return the current state of the service; an answer reads it once."""
        return self.latest.state
