"""Grants of bearer secrets: the static one by comparison, all others by the database.

A verified token is answered from memory and verified again in the background, so that a scrape never
waits for the database. Memory holds hashes, never secrets. While the database is away a known token reads
until it expires; nobody changes anything; and what was found revoked or expired stays so.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from service.api.core.few_at_once import InThread
from service.api.core.ports import TokenChecker
from service.api.core.problems import ProblemError, unavailable
from service.api.core.token_checks import TokenChecks
from service.storage.tokens.tokens import PREFIX, ApiToken, Grant, Scope, hash_of

TRUSTED_SECONDS: Final = 10.0  # then a token in use is verified again
UNUSED_SECONDS: Final = 120.0  # then an unused token is verified before it is answered
RETRY_SECONDS: Final = 10.0  # a database that is away is not queried for every request
DENIED_SECONDS: Final = 5.0  # a repeated wrong secret costs no query; a new token may wait so long
ANSWER_SECONDS: Final = 2.0  # how long a request waits for the database
# How long after the database confirmed a token a request may do without: to read, until the token expires;
# to submit log lines, for a minute. Every other right is confirmed for each request.
UNCONFIRMED_SECONDS: Final[Mapping[Scope, float]] = {Scope.READ: math.inf, Scope.INGEST: 60.0}
STATIC_NAME: Final = "TIDEMARK_HTTP__TOKEN"  # the setting it comes from
MAX_REMEMBERED: Final = 1000  # tokens, and as many denied secrets
MAX_STRANGERS: Final = 128  # requests with unknown secrets that wait for the database

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    token: ApiToken
    confirmed: float  # on the monotonic clock: when the database last called it valid
    tried: float  # when it was last queried
    due: float  # when to verify it again

    @property
    def grant(self) -> Grant:
        return Grant(self.token.name, self.token.scopes)


class Tokens:
    """Verifies secrets, and remembers their grants."""

    def __init__(
        self,
        checker: TokenChecker,
        *,
        static: str | None,
        in_thread: InThread,
        monotonic: Callable[[], float],
        utc_now: Callable[[], datetime],
    ) -> None:
        self._static = None if static is None else hash_of(static)
        self._checks = TokenChecks(checker, in_thread, self._note)
        self._monotonic = monotonic
        self._utc_now = utc_now
        self._verified: dict[str, _Verified] = {}
        self._denied: dict[str, float] = {}  # until when it costs no query
        self._strangers = 0

    async def grant(self, secret: str, right: Scope) -> Grant | None:
        """Return the grant of a secret that asks for a right, None if it is not valid.

        Raises:
            ProblemError: the database does not answer, and the right needs its confirmation, or the
                secret was never verified before.
        """
        digest = hash_of(secret)
        if self._static is not None and hmac.compare_digest(digest, self._static):
            return Grant(STATIC_NAME, frozenset({Scope.READ}))
        if not secret.startswith(PREFIX):
            return None
        verified = self._valid(digest)
        if verified is not None and self._is_in_use(verified, right):
            if self._monotonic() >= verified.due:
                self._checks.check(digest, is_fresh=False)
            return verified.grant
        if self._monotonic() < self._denied.get(digest, 0.0):
            return None
        is_answered = await self._ask(digest, right, is_stranger=verified is None)
        verified = self._valid(digest)
        if verified is not None and (is_answered or self._is_confirmed(verified, right)):
            return verified.grant
        if is_answered or (verified is None and digest in self._denied):
            return None
        raise _no_answer()

    def _valid(self, digest: str) -> _Verified | None:
        """Return a verified token; one that has expired is forgotten, whatever the clock says later."""
        verified = self._verified.get(digest)
        if verified is None or not verified.token.is_expired(self._utc_now()):
            return verified
        self._deny(digest)
        return None

    def _is_in_use(self, verified: _Verified, right: Scope) -> bool:
        is_used = self._monotonic() < verified.tried + UNUSED_SECONDS
        return is_used and self._is_confirmed(verified, right)

    def _is_confirmed(self, verified: _Verified, right: Scope) -> bool:
        unconfirmed_seconds = self._monotonic() - verified.confirmed
        return unconfirmed_seconds < UNCONFIRMED_SECONDS.get(right, 0.0)

    async def _ask(self, digest: str, right: Scope, *, is_stranger: bool) -> bool:
        """Wait a short time for a check, which goes on without the request; return whether it answered.

        Raises:
            ProblemError: too many requests with unknown secrets wait already.
        """
        if is_stranger and self._strangers >= MAX_STRANGERS:
            raise _no_answer()
        self._strangers += is_stranger
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    is_fresh = right not in UNCONFIRMED_SECONDS
                    return await asyncio.shield(self._checks.check(digest, is_fresh=is_fresh))
            return False
        finally:
            self._strangers -= is_stranger

    def _note(self, hashes: Collection[str], tokens: Mapping[str, ApiToken] | None) -> None:
        """Remember what a query returned, None if the database did not answer."""
        for digest in hashes:
            if tokens is None:
                self._put_off(digest)
            elif digest in tokens:
                self._confirm(digest, tokens[digest])
            else:
                self._deny(digest)

    def _confirm(self, digest: str, token: ApiToken) -> None:
        now = self._monotonic()
        self._denied.pop(digest, None)
        verified = _Verified(token=token, confirmed=now, tried=now, due=now + TRUSTED_SECONDS)
        _remember(self._verified, digest, verified)

    def _deny(self, digest: str) -> None:
        self._verified.pop(digest, None)
        _remember(self._denied, digest, self._monotonic() + DENIED_SECONDS)

    def _put_off(self, digest: str) -> None:
        verified, now = self._verified.get(digest), self._monotonic()
        if verified is not None:
            self._verified[digest] = replace(verified, tried=now, due=now + RETRY_SECONDS)


def _no_answer() -> ProblemError:
    return unavailable("tokens cannot be checked: the database does not answer")


def _remember(memory: dict[str, V], digest: str, value: V) -> None:
    """Store a value as the newest; drop the oldest when there are too many."""
    memory.pop(digest, None)
    if len(memory) >= MAX_REMEMBERED:
        del memory[next(iter(memory))]
    memory[digest] = value
