"""What every request passes before a route sees it: an id, a limit of requests, a limit of bytes."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.web.access import PUBLIC_PATHS
from service.web.problems import ProblemError, unavailable

REQUEST_ID: Final = "X-Request-ID"
USABLE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
MAX_BODY: Final = 64 * 1024  # bytes
BODY_SECONDS: Final = 10.0
SCRAPE_PATH: Final = "/metrics"
SCRAPES_AT_ONCE: Final = 4  # two Prometheus servers, and each once more after a time-out
ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",  # an old answer about a cluster is a wrong one
    "X-Content-Type-Options": "nosniff",
}


class Stamp:
    """Gives every request an id and every answer the headers that all have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if USABLE_ID.fullmatch(given) else secrets.token_hex(8)
        scope["request_id"] = request_id

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({**ALWAYS, REQUEST_ID: request_id})
            await send(message)

        await self._app(scope, receive, stamped)


class Busy:
    """Refuses a request while too many others are being answered.

    Probes always pass, and a few scrapes have places of their own: when many ask, it is most needed
    to know how the service is.
    """

    def __init__(self, app: ASGIApp, *, limit: int, scrapes: int = SCRAPES_AT_ONCE) -> None:
        self._app = app
        self._scrapes = _Places(scrapes)
        self._others = _Places(limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        path = scope["path"]
        if path in PUBLIC_PATHS:
            await self._app(scope, receive, send)
            return
        is_scrape = path == SCRAPE_PATH and self._scrapes.has_room
        places = self._scrapes if is_scrape else self._others
        if not places.has_room:
            raise unavailable(f"{places.limit} requests are being answered already")
        places.taken += 1
        try:
            await self._app(scope, receive, send)
        finally:
            places.taken -= 1


@dataclass(slots=True)
class _Places:
    limit: int
    taken: int = 0

    @property
    def has_room(self) -> bool:
        return self.taken < self.limit


class BodyLimit:
    """Reads a request's body before a route does, and refuses one that is too large or too slow."""

    def __init__(
        self, app: ASGIApp, *, limit: int = MAX_BODY, seconds: float = BODY_SECONDS
    ) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, with a body that is there already."""
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        if not length.isdigit() or len(length) > 18 or int(length) > self._limit:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError as exc:
            raise _closing(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from exc
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body; None if the client went away."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if len(body) > self._limit:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> ProblemError:
        told = f"a body may have {self._limit} bytes"
        return _closing(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)


def _closing(status: HTTPStatus, detail: str) -> ProblemError:
    """Return a problem after which the connection ends: what is left of the body is not read."""
    return ProblemError(status, detail, headers={"Connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body first."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
