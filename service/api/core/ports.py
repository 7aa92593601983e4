"""What the HTTP API needs from others: nothing here asks Kafka.

Only `History`, `Inbox`, `TokenChecker` and what lies on the `Admin services` ask a database, and all only through `FewAtOnce`.
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

DATABASE_CALLS_AT_ONCE: Final = (
    3  # fewer than the pool has connections: rounds store through it too
)
WAITING_CALLS: Final = 16  # for their turn: who comes then is told so at once
CALL_SECONDS: Final = 10.0  # waiting included

T = TypeVar("T")


class InThread(Protocol):
    """Calls a function that blocks, away from the event loop."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return what the function returns, or raise what it raises."""


class Log(Protocol):
    """Where error of our own is told."""

    def error(self, event: str, /, *args: Any, **fields: Any) -> Any:
        """Write one event."""


class TokenChecker(Protocol):
    """Knows the tokens that were given out."""

    def verify(self, secret: str) -> Grant | None:
        """Return whose a secret is, None if it is nobody's; StoreError while that is not known."""


class History(Protocol):
    """Findings as they are stored; every call may raise StoreError."""

    def page(self, wanted: FindingFilter, limit: int) -> list[PastFinding]:
        """Return findings, newest first."""

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        """Return the newest finding of a rule whose labels' hash begins so."""

    def transitions(self, finding: int) -> Sequence[StoredTransition]:
        """Return the last transitions of a finding, oldest first."""


class Inbox(Protocol):
    """Where log lines of brokers go."""

    def accept(self, delivery: Delivery, /) -> Counts | Rejection:
        """Store a delivery, or say why not; StoreError while that cannot be done."""


class FewAtOnce:
    """Lets few calls pass at a time; a few others wait for their turn, and none for long.

    A database that hangs would otherwise collect a thread for every request, and then requests
    until there is no space for one that needs no database.
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
                return await asyncio.shield(asyncio.ensure_future(self._called(function)))
        except TimeoutError as exc:
            raise TooLateError("the database did not answer in time") from exc

    async def _turn(self) -> None:
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def _called(self, function: Callable[[], T]) -> T:
        """Call, and keep the place until the thread ends, also when nobody waits for it any more."""
        try:
            return await self._in_thread(function)
        finally:
            self._free.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All that answers are made of."""

    latest: Latest
    exposition: Exposition
    history: History
    utc_now: Callable[[], datetime]
    in_thread: InThread
    in_database: InThread  # calls of `history`, few at once
    inbox: Inbox
    # Calls of `inbox`, one at a time: they take turns in the database anyway, and what a body becomes
    # when it is decoded is many times its size.
    ingesting: InThread
    admin: AdminServices  # its calls go through `in_database`

    @property
    def state(self) -> ServiceState:
        """Return the newest observation; an answer reads it once."""
        return self.latest.state
