"""Grants of bearer secrets: the static one by comparison, all others by the database.

A verified token is answered from memory and verified again in the background, so that a scrape never
waits for the database. Memory holds hashes, never secrets.
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

TRUSTED_SECONDS: Final = 10.0  # then a token in use is verified again
UNUSED_SECONDS: Final = 120.0  # then an unused token is verified before it is answered
RETRY_SECONDS: Final = 10.0  # a database that is away is not queried for every request
DENIED_SECONDS: Final = 5.0  # a repeated wrong secret costs no query; a new token may wait so long
ANSWER_SECONDS: Final = 2.0  # how long a request waits for the database
STATIC_NAME: Final = "TIDEMARK_HTTP__TOKEN"  # the setting it comes from
MAX_REMEMBERED: Final = 1000  # tokens, and as many denied secrets

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    grant: Grant
    tried: float  # on the monotonic clock: when it was last verified
    due: float  # when to verify it again


class Tokens:
    """Verifies secrets, and remembers their grants."""

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
        self._checks: dict[bytes, asyncio.Task[bool]] = {}  # one query per secret at a time

    async def grant(self, secret: str, *, is_change: bool = False) -> Grant | None:
        """Return the grant of a secret, None if it is not valid.

        A change always verifies the token first, so that a token that was just revoked changes
        nothing.

        Raises:
            ProblemError: the database does not answer, and the secret was never verified before.
        """
        digest, now = _digest(secret), self._monotonic()
        if self._static is not None and hmac.compare_digest(digest, self._static):
            return Grant(STATIC_NAME, frozenset({Scope.READ}))
        if self._checker is None or not secret.startswith(PREFIX):
            return None
        verified = self._verified.get(digest)
        if is_change:
            return await self._fresh(self._checker, secret, digest)
        if verified is not None and now < verified.tried + UNUSED_SECONDS:
            if now >= verified.due:
                self._start_check(self._checker, secret, digest)
            return verified.grant
        if now < self._denied.get(digest, now):
            return None
        return await self._answer(self._start_check(self._checker, secret, digest), digest)

    async def _answer(self, check: asyncio.Task[bool], digest: bytes) -> Grant | None:
        """Return the result of a check, or the previous one if the database does not answer."""
        is_answered = await _wait_for(check)
        verified = self._verified.get(digest)
        if verified is None and not is_answered:
            raise _no_answer()
        return None if verified is None else verified.grant

    async def _fresh(self, checker: TokenChecker, secret: str, digest: bytes) -> Grant | None:
        """Return a new result of the database; a recently denied secret stays denied."""
        if self._monotonic() < self._denied.get(digest, 0.0):
            return None
        begun = self._checks.get(digest)
        if begun is not None:  # it may have been answered before the token was revoked
            await _wait_for(begun)
        if not await _wait_for(self._start_check(checker, secret, digest)):
            raise _no_answer()
        verified = self._verified.get(digest)
        return None if verified is None else verified.grant

    def _start_check(self, checker: TokenChecker, secret: str, digest: bytes) -> asyncio.Task[bool]:
        check = self._checks.get(digest)
        if check is None:
            check = asyncio.create_task(self._check(checker, secret, digest), name="token")
            self._checks[digest] = check
            check.add_done_callback(lambda _: self._checks.pop(digest, None))
        return check

    async def _check(self, checker: TokenChecker, secret: str, digest: bytes) -> bool:
        """Query the database and remember the result; return whether it answered."""
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
            verified = _Verified(grant=grant, tried=now, due=now + TRUSTED_SECONDS)
            _remember(self._verified, digest, verified)
        return True

    def _put_off(self, digest: bytes) -> None:
        verified, now = self._verified.get(digest), self._monotonic()
        if verified is not None:
            self._verified[digest] = replace(verified, tried=now, due=now + RETRY_SECONDS)


async def _wait_for(check: asyncio.Task[bool]) -> bool:
    """Wait a short time for a check, which goes on without the request; return whether it answered."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asyncio.shield(check)
    return False


def _no_answer() -> ProblemError:
    return unavailable("tokens cannot be checked: the database does not answer")


def _remember(memory: dict[bytes, V], digest: bytes, value: V) -> None:
    """Store a value as the newest; drop the oldest when there are too many."""
    memory.pop(digest, None)
    if len(memory) >= MAX_REMEMBERED:
        del memory[next(iter(memory))]
    memory[digest] = value


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
