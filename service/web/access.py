"""Who may read.

On the loopback interface nobody needs a token, but the Host header has to name that interface: a
web page that makes its own name point here (DNS rebinding) cannot do that. Elsewhere a bearer token
with scope read is needed, for everything but the probes of an orchestrator.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rules.errors import StoreError
from service.storage.tokens import PREFIX
from service.storage.tokens import Scope as Right
from service.web.ports import InThread, TokenChecker
from service.web.problems import ProblemError, unavailable

PUBLIC_PATHS: Final = frozenset({"/livez", "/readyz"})
TRUSTED_SECONDS: Final = 60.0  # how long a revoked token may still work
RETRY_SECONDS: Final = 10.0  # a database that is away is not asked for every request
MAX_REMEMBERED: Final = 1000  # tokens
MAX_SECRET: Final = 4096  # characters
CHALLENGE: Final = 'Bearer realm="tidemark"'


class Tokens:
    """Tells what a secret allows; it remembers hashes, never secrets."""

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

    async def rights(self, secret: str) -> frozenset[Right] | None:
        """Return what a secret allows, None if it is nobody's.

        Raises:
            ProblemError: the database is away, and the secret was never verified before.
        """
        digest = _digest(secret)
        if self._static is not None and hmac.compare_digest(digest, self._static):
            return frozenset({Right.READ})
        known = self._verified.get(digest)
        if known is not None and self._monotonic() < known.until:
            return known.rights
        if self._checker is None or not secret.startswith(PREFIX):
            return None
        return await self._asked(self._checker, secret, digest)

    async def _asked(
        self, checker: TokenChecker, secret: str, digest: bytes
    ) -> frozenset[Right] | None:
        try:
            rights = await self._in_thread(lambda: checker.verify(secret))
        except StoreError as exc:
            known = self._verified.get(digest)
            if known is None:
                raise unavailable("tokens cannot be checked: the database is away") from exc
            self._remember(digest, known.rights, RETRY_SECONDS)
            return known.rights
        if rights is None:
            self._verified.pop(digest, None)
        else:
            self._remember(digest, rights, TRUSTED_SECONDS)
        return rights

    def _remember(self, digest: bytes, rights: frozenset[Right], seconds: float) -> None:
        self._verified.pop(digest, None)
        if len(self._verified) >= MAX_REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = _Verified(rights, self._monotonic() + seconds)


@dataclass(frozen=True, slots=True)
class _Verified:
    rights: frozenset[Right]
    until: float  # on the monotonic clock


class Access:
    """Lets a request pass, or answers why not."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, is_loopback: bool) -> None:
        self._app = app
        self._tokens = tokens
        self._is_loopback = is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["path"] not in PUBLIC_PATHS:
            await self._check(Headers(scope=scope))
        await self._app(scope, receive, send)

    async def _check(self, headers: Headers) -> None:
        if self._is_loopback and names_loopback(headers.get("host", "")):
            return
        secret = bearer_of(headers)
        if secret is None and self._is_loopback:
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                "The Host header does not name this machine's loopback interface: "
                "ask http://127.0.0.1, or give a token.",
            )
        if secret is None:
            raise _unauthorized("A bearer token with scope read is needed.", "")
        rights = await self._tokens.rights(secret)
        if rights is None:
            raise _unauthorized("The token is not valid.", ', error="invalid_token"')
        if Right.READ not in rights:
            challenge = f'{CHALLENGE}, error="insufficient_scope", scope="read"'
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                "The token does not have scope read.",
                headers={"WWW-Authenticate": challenge},
            )


def names_loopback(host: str) -> bool:
    """Tell whether a Host header means the machine itself: by address, or as localhost."""
    name, _, port = host.rpartition(":")
    if not name or not (port.isascii() and port.isdigit()):
        name = host
    if name.lower() == "localhost":
        return True
    try:
        if name.startswith("["):
            return name.endswith("]") and ipaddress.IPv6Address(name[1:-1]).is_loopback
        return ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


def bearer_of(headers: Headers) -> str | None:
    """Return the secret of an Authorization header, None if there is none of ours."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    is_bearer = scheme.lower() == "bearer" and 0 < len(secret) <= MAX_SECRET
    return secret if is_bearer else None


def _unauthorized(detail: str, error: str) -> ProblemError:
    challenge = {"WWW-Authenticate": CHALLENGE + error}
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, headers=challenge)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
