"""Who may read.

On the loopback interface nobody needs a token, but the Host header has to name that interface: a
web page that makes its own name point here (DNS rebinding) cannot do that. Elsewhere a bearer token
with scope read is needed, for everything but the probes of an orchestrator.
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.storage.tokens import Scope as Right
from service.web.problems import ProblemError
from service.web.rights import Tokens

PUBLIC_PATHS: Final = frozenset({"/livez", "/readyz"})
MAX_SECRET: Final = 4096  # characters
CHALLENGE: Final = 'Bearer realm="tidemark"'


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
