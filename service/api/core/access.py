"""Who may read, who may bring log lines, and who may change something.

On the loopback interface nobody needs a token, but the Host header has to name that interface: a
web page that makes its own name point here (DNS rebinding) cannot do that. It could send log lines
or a change all the same, without reading the answer, but not without the header Origin. Elsewhere a
bearer token is needed for everything but the probes of an orchestrator. Whoever gives a token with a
change is known by it, so that it has to be valid wherever it comes from.
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
GRANT: Final = "tidemark.grant"  # in the scope of a request: who asks
LOOPBACK: Final = Grant("loopback", frozenset(Right))  # whoever is on this machine, by no token
# By the first word of a path; what is not named here only an administrator changes.
CHANGES: Final[Mapping[str, Right]] = {
    "ingest": Right.INGEST,
    "alerts": Right.ACK,
    "silences": Right.SILENCE,
}


class Access:
    """Lets a request pass, or answers why not."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, is_loopback: bool) -> None:
        self._app = app
        self._tokens = tokens
        self._is_loopback = is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        path = scope["path"]
        if path not in PUBLIC_PATHS:
            right = right_for(scope["method"], path)
            scope[GRANT] = await self._granted(Headers(scope=scope), right)
        await self._app(scope, receive, send)

    async def _granted(self, headers: Headers, right: Right) -> Grant:
        is_change = right not in (Right.READ, Right.INGEST)
        secret = bearer_of(headers)
        is_named = is_change and "authorization" in headers
        if self._is_loopback and not is_named and _needs_no_token(headers, right):
            return LOOPBACK
        if secret is None and self._is_loopback and not is_named:
            raise _stranger(right)
        if secret is None:
            raise _unauthorized(f"A bearer token with scope {right} is needed.", "")
        grant = await self._tokens.grant(secret, is_change=is_change)
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
    """Return what a request needs; for a path that there is not, what keeps most away."""
    if path.startswith(INGEST):
        return Right.INGEST
    if not path.startswith(API):
        return Right.READ
    word = path.removeprefix(API).partition("/")[0]
    if method in READS:
        return Right.ADMIN if word == "audit" else Right.READ
    return CHANGES.get(word, Right.ADMIN)


def _needs_no_token(headers: Headers, right: Right) -> bool:
    """Tell whether a request over the loopback interface is no web page's."""
    is_page = right is not Right.READ and "origin" in headers
    return names_loopback(headers.get("host", "")) and not is_page


def _stranger(right: Right) -> ProblemError:
    why = "The Host header does not name this machine's loopback interface"
    if right is not Right.READ:
        why += ", or a web page sends this"
    return ProblemError(HTTPStatus.FORBIDDEN, f"{why}: ask http://127.0.0.1, or give a token.")


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
