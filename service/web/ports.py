"""What the HTTP API needs from others: nothing here asks Kafka, and only `History` asks a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from service.latest import Latest, Look
from service.metrics.exposition import Exposition
from service.storage.findings import StoredTransition
from service.storage.history import PastFinding, Wanted
from service.storage.tokens import Scope

DATABASE_CALLS_AT_ONCE: Final = (
    3  # fewer than the pool has connections: rounds store through it too
)

T = TypeVar("T")


class InThread(Protocol):
    """Calls a function that blocks, away from the event loop."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return what the function returns, or raise what it raises."""


class Log(Protocol):
    """Where trouble of our own is told."""

    def error(self, event: str, /, *args: Any, **fields: Any) -> Any:
        """Write one event."""


class TokenChecker(Protocol):
    """Knows the tokens that were given out."""

    def verify(self, secret: str) -> frozenset[Scope] | None:
        """Return a secret's scopes, None if it is nobody's; StoreError while that is not known."""


class History(Protocol):
    """Findings as they are stored; every call may raise StoreError."""

    def page(self, wanted: Wanted, limit: int) -> list[PastFinding]:
        """Return findings, newest first."""

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        """Return the newest finding of a rule whose labels' hash begins so."""

    def transitions(self, finding: int) -> Sequence[StoredTransition]:
        """Return the last transitions of a finding, oldest first."""


class FewAtOnce:
    """Lets few calls pass at a time; the others wait for their turn.

    A database that hangs would otherwise collect a thread for every request.
    """

    def __init__(self, in_thread: InThread, limit: int = DATABASE_CALLS_AT_ONCE) -> None:
        self._in_thread = in_thread
        self._free = asyncio.Semaphore(limit)

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Wait for a turn, then call in a thread."""
        async with self._free:
            return await self._in_thread(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All that answers are made of."""

    latest: Latest
    exposition: Exposition
    history: History
    utc_now: Callable[[], datetime]
    in_thread: InThread
    in_database: InThread  # calls of `history`, few at once

    @property
    def look(self) -> Look:
        """Return the newest look; an answer reads it once."""
        return self.latest.look
