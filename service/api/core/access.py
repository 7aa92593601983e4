"""Access control: who may read, who may submit log lines, and who may change something.

On the loopback interface nobody needs a token, unless the settings require one, but the Host header has to
name that interface: a web page that makes its own name point here (DNS rebinding) cannot do that. It could
send log lines or a change all the same, without reading the answer, but not without the header Origin. What
a proxy has forwarded, as its headers say, may come from anywhere. Elsewhere a
bearer token is needed for everything but the probes of an orchestrator. A token that is
sent with a change names its author, so it has to be valid wherever the change comes from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.core.prefix import PREFIX
from service.api.core.problems import ProblemError
from service.api.core.rights import Tokens
from service.storage.tokens.tokens import Grant
from service.storage.tokens.tokens import Scope as Right

PUBLIC_PATHS: Final = frozenset({"/livez", "/readyz"})
API: Final = f"{PREFIX}/"
INGEST: Final = f"{API}ingest/"  # all paths below it
MAX_SECRET: Final = 4096  # characters
CHALLENGE: Final = 'Bearer realm="tidemark"'
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# Headers by which a proxy says that it forwards a request, and all that begin with the prefix.
FORWARDING: Final = frozenset({"forwarded", "via", "x-real-ip"})
FORWARDING_PREFIX: Final = "x-forwarded-"
GRANT: Final = "tidemark.grant"  # key in the scope of a request: its caller
# Any process on this machine, without a token.
LOOPBACK: Final = Grant("loopback", frozenset(Right))
# By the first segment of a path; everything else needs scope admin.
CHANGES: Final[Mapping[str, Right]] = {
    "ingest": Right.INGEST,
    "alerts": Right.ACK,
    "silences": Right.SILENCE,
}


class Access:
    """Middleware that lets a request pass or denies it."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, trusts_local: bool) -> None:
        """`trusts_local`: only this machine can connect, and its processes need no token."""
        self._app = app
        self._tokens = tokens
        self._trusts_local = trusts_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        path = scope["path"]
        if path not in PUBLIC_PATHS:
            right = right_for(scope["method"], path)
            scope[GRANT] = await self._grant(Headers(scope=scope), right)
        await self._app(scope, receive, send)

    async def _grant(self, headers: Headers, right: Right) -> Grant:
        is_change = right not in (Right.READ, Right.INGEST)
        secret = bearer_of(headers)
        is_named = is_change and "authorization" in headers
        if self._trusts_local and not is_named and not is_forwarded(headers):
            if _needs_no_token(headers, right):
                return LOOPBACK
            if secret is None:
                raise _stranger(right)
        if secret is None:
            why = "A proxy forwarded this request: a" if is_forwarded(headers) else "A"
            raise _unauthorized(f"{why} bearer token with scope {right} is needed.", "")
        grant = await self._tokens.grant(secret, right)
        if grant is None:
            raise _unauthorized(
                "The token is not valid: it is unknown, revoked or expired.",
                ', error="invalid_token"',
            )
        if right not in grant.scopes:
            challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{right}"'
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                f"The token does not have scope {right}.",
                headers={"WWW-Authenticate": challenge},
            )
        return grant


def right_for(method: str, path: str) -> Right:
    """Return the scope that a request needs; an unknown path needs the narrowest one."""
    if path.startswith(INGEST):
        return Right.INGEST
    if not path.startswith(API):
        return Right.READ
    word = path.removeprefix(API).partition("/")[0]
    if method in READS:
        return Right.ADMIN if word == "audit" else Right.READ
    return CHANGES.get(word, Right.ADMIN)


def is_forwarded(headers: Headers) -> bool:
    """Return whether a proxy forwarded a request, and says so."""
    return any(name in FORWARDING or name.startswith(FORWARDING_PREFIX) for name in headers)


def _needs_no_token(headers: Headers, right: Right) -> bool:
    """Return whether a loopback request does not come from a web page."""
    is_page = right is not Right.READ and "origin" in headers
    return names_loopback(headers.get("host", "")) and not is_page


def _stranger(right: Right) -> ProblemError:
    why = "The Host header does not name this machine's loopback interface"
    if right is not Right.READ:
        why += ", or a web page sends this"
    return ProblemError(HTTPStatus.FORBIDDEN, f"{why}: use http://127.0.0.1, or send a token.")


def names_loopback(host: str) -> bool:
    """Return whether a Host header names a loopback address or localhost."""
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
    """Return the bearer secret of an Authorization header, None if there is none."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    is_bearer = scheme.lower() == "bearer" and 0 < len(secret) <= MAX_SECRET
    return secret if is_bearer else None


def _unauthorized(detail: str, error: str) -> ProblemError:
    challenge = {"WWW-Authenticate": CHALLENGE + error}
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, headers=challenge)
