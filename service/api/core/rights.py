"""What a secret allows: the static one by comparison, all others by the database.

A token that was verified is answered from memory and asked for again beside the request, so that a
scrape never waits for a database. Memory holds hashes, never secrets.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from rules.errors import StoreError
from service.api.core.ports import InThread, TokenChecker
from service.api.core.problems import ProblemError, unavailable
from service.storage.tokens.tokens import PREFIX, Grant, Scope

TRUSTED_SECONDS: Final = 10.0  # after these a token that is used is asked for again
UNUSED_SECONDS: Final = 120.0  # after these first of all: it may have been revoked long ago
RETRY_SECONDS: Final = 10.0  # a database that is away is not asked for every request
DENIED_SECONDS: Final = 5.0  # guessing the same again costs no query; a new token waits so long
ANSWER_SECONDS: Final = 2.0  # how long a request waits for the database
STATIC_NAME: Final = "TIDEMARK_HTTP__TOKEN"  # the setting it comes from
MAX_REMEMBERED: Final = 1000  # tokens, and as many denied secrets

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    grant: Grant
    tried: float  # on the monotonic clock: when the database was last asked for it
    due: float  # when to ask again


class Tokens:
    """Tells what a secret allows."""

    def __init__(
        self,
        checker: TokenChecker | None,
        *,
        static: str | None,
        in_thread: InThread,
        monotonic: Callable[[], float],
    ) -> None:
        self._checker = checker
        self._static = None if static is None else _digest(static)
        self._in_thread = in_thread
        self._monotonic = monotonic
        self._verified: dict[bytes, _Verified] = {}
        self._denied: dict[bytes, float] = {}  # until when
        self._asking: dict[bytes, asyncio.Task[bool]] = {}  # one question per secret at a time

    async def grant(self, secret: str, *, is_change: bool = False) -> Grant | None:
        """Return whose a secret is, None if it is nobody's.

        Who changes something is always asked for first, so that a token that was just revoked
        changes nothing.

        Raises:
            ProblemError: the database gives no answer, and the secret was never verified before.
        """
        digest, now = _digest(secret), self._monotonic()
        if self._static is not None and hmac.compare_digest(digest, self._static):
            return Grant(STATIC_NAME, frozenset({Scope.READ}))
        if self._checker is None or not secret.startswith(PREFIX):
            return None
        known = self._verified.get(digest)
        if is_change:
            return await self._fresh(self._checker, secret, digest)
        if known is not None and now < known.tried + UNUSED_SECONDS:
            if now >= known.due:
                self._ask(self._checker, secret, digest)
            return known.grant
        if now < self._denied.get(digest, now):
            return None
        return await self._answer(self._ask(self._checker, secret, digest), digest)

    async def _answer(self, asking: asyncio.Task[bool], digest: bytes) -> Grant | None:
        """Return what the database says, or what it said before if it gives no answer."""
        is_answered = await _waited(asking)
        known = self._verified.get(digest)
        if known is None and not is_answered:
            raise _no_answer()
        return None if known is None else known.grant

    async def _fresh(self, checker: TokenChecker, secret: str, digest: bytes) -> Grant | None:
        """Return what the database says now; a guess is remembered all the same."""
        if self._monotonic() < self._denied.get(digest, 0.0):
            return None
        begun = self._asking.get(digest)
        if begun is not None:  # it may have been answered before the token was revoked
            await _waited(begun)
        if not await _waited(self._ask(checker, secret, digest)):
            raise _no_answer()
        known = self._verified.get(digest)
        return None if known is None else known.grant

    def _ask(self, checker: TokenChecker, secret: str, digest: bytes) -> asyncio.Task[bool]:
        asking = self._asking.get(digest)
        if asking is None:
            asking = asyncio.create_task(self._asked(checker, secret, digest), name="token")
            self._asking[digest] = asking
            asking.add_done_callback(lambda _: self._asking.pop(digest, None))
        return asking

    async def _asked(self, checker: TokenChecker, secret: str, digest: bytes) -> bool:
        """Ask the database and remember what it says; whether it said anything."""
        try:
            grant = await self._in_thread(lambda: checker.verify(secret))
        except (StoreError, ProblemError):
            self._put_off(digest)
            return False
        now = self._monotonic()
        if grant is None:
            self._verified.pop(digest, None)
            _remember(self._denied, digest, now + DENIED_SECONDS)
        else:
            known = _Verified(grant=grant, tried=now, due=now + TRUSTED_SECONDS)
            _remember(self._verified, digest, known)
        return True

    def _put_off(self, digest: bytes) -> None:
        known, now = self._verified.get(digest), self._monotonic()
        if known is not None:
            self._verified[digest] = replace(known, tried=now, due=now + RETRY_SECONDS)


async def _waited(asking: asyncio.Task[bool]) -> bool:
    """Wait for the database, but not for long: the question goes on without the request."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asyncio.shield(asking)
    return False


def _no_answer() -> ProblemError:
    return unavailable("tokens cannot be checked: the database gives no answer")


def _remember(memory: dict[bytes, V], digest: bytes, value: V) -> None:
    """Put a value last; the oldest goes when there are too many."""
    memory.pop(digest, None)
    if len(memory) >= MAX_REMEMBERED:
        del memory[next(iter(memory))]
    memory[digest] = value


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
