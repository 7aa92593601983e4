"""Middleware that every request passes: a request id, limits of requests and bytes, paused rejections."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.core.access import INGEST, PUBLIC_PATHS
from service.api.core.problems import OverloadError, ProblemError, response_of, unavailable

REQUEST_ID: Final = "X-Request-ID"
USABLE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
MAX_BODY: Final = 64 * 1024  # bytes
MAX_LOG_BODY: Final = 4 * 1024 * 1024  # bytes; what shippers send at once by default has 1 to 3 MB
BODY_SECONDS: Final = 10.0
SCRAPE_PATH: Final = "/metrics"  # exporters' names are below it
SCRAPES_AT_ONCE: Final = 4  # two Prometheus servers, and each once more after a time-out
INGESTS_AT_ONCE: Final = 4  # each holds its body while it waits for its turn
INGEST_AGAIN_SECONDS: Final = 1
REJECTION_SECONDS: Final = 0.5
REJECTIONS_HELD_BACK: Final = 256
MAX_DRAINED: Final = 32 * 1024 * 1024  # bytes; a shipper's defaults send up to 10 MB at once
DRAIN_SECONDS: Final = 5.0
# Between two parts of it, of about 64 KiB: so much in a second is read of what nobody needs, and no more.
DRAIN_PAUSE_SECONDS: Final = 0.01
ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",  # an old answer about a cluster is a wrong one
    "X-Content-Type-Options": "nosniff",
}


class Stamp:
    """Gives every request an id and every answer the common headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        sent_id = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = sent_id if USABLE_ID.fullmatch(sent_id) else secrets.token_hex(8)
        scope["request_id"] = request_id
        is_begun = False

        async def send_stamped(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                headers = MutableHeaders(scope=message)
                headers.update({**ALWAYS, REQUEST_ID: request_id})
            await send(message)

        try:
            await self._app(scope, receive, send_stamped)
        except asyncio.CancelledError:
            # The server stops, and has waited for its grace time: nothing else cancels a request.
            if not is_begun:
                stopping = response_of(unavailable("Tidemark is stopping"), scope["path"])
                await stopping(scope, receive, send_stamped)


class DrainBody:
    """Reads the rest of a body of log lines after a rejection was answered.

    A shipper sends the whole body before it reads the answer. If the connection were closed early, it
    would see a reset instead of the reason, and send the same body again and again. The answer is sent
    first and only its end is held back: from its start on the connection is one that may be dropped.
    """

    def __init__(
        self, app: ASGIApp, *, limit: int = MAX_DRAINED, seconds: float = DRAIN_SECONDS
    ) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if not scope["path"].startswith(INGEST) or "expect" in Headers(scope=scope):
            await self._app(scope, receive, send)  # a client that sends Expect waits with its body
            return
        is_over = False

        async def receive_noted() -> Message:
            nonlocal is_over
            message = await receive()
            is_over = not message.get("more_body", False)
            return message

        async def drain() -> None:
            size = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    while not is_over and size <= self._limit:
                        size += len((await receive_noted()).get("body", b""))
                        await asyncio.sleep(DRAIN_PAUSE_SECONDS)

        async def answer(message: Message) -> None:
            if message["type"] != "http.response.body" or message.get("more_body", False):
                await send(message)
                return
            await send({**message, "more_body": True})
            await drain()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(scope, receive_noted, answer)


class Busy:
    """Rejects a request while too many others are being answered.

    Probes always pass, and a few scrapes have places of their own: the state of the service is needed
    most when it is busy. Submissions of log lines have places apart from all reads.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limit: int,
        scrapes: int = SCRAPES_AT_ONCE,
        ingests: int = INGESTS_AT_ONCE,
    ) -> None:
        self._app = app
        self._limit = limit
        self._ingest_limit = ingests
        self._scrapes = asyncio.Semaphore(scrapes)
        self._ingests = asyncio.Semaphore(ingests)
        self._others = asyncio.Semaphore(limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        path = scope["path"]
        if path in PUBLIC_PATHS:
            await self._app(scope, receive, send)
            return
        places = self._places(path)
        if places.locked():
            raise self._rejection(places)
        async with places:
            await self._app(scope, receive, send)

    def _places(self, path: str) -> asyncio.Semaphore:
        if path.startswith(INGEST):
            return self._ingests
        is_scrape = f"{path}/".startswith(f"{SCRAPE_PATH}/") and not self._scrapes.locked()
        return self._scrapes if is_scrape else self._others

    def _rejection(self, places: asyncio.Semaphore) -> OverloadError:
        if places is not self._ingests:
            return OverloadError(f"{self._limit} requests are being answered already")
        detail = f"{self._ingest_limit} requests with log lines are being answered already"
        return OverloadError(detail, HTTPStatus.TOO_MANY_REQUESTS, seconds=INGEST_AGAIN_SECONDS)


class PauseRejections:
    """Holds back the rejection of a request too many.

    Most clients repeat it at once, and to reject them without a pause would take all the time of the event loop.
    It holds no place meanwhile; of very many only some are held back, because each keeps a connection.
    """

    def __init__(
        self, app: ASGIApp, *, seconds: float = REJECTION_SECONDS, limit: int = REJECTIONS_HELD_BACK
    ) -> None:
        self._app = app
        self._seconds = seconds
        self._limit = limit
        self._held_back = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        try:
            await self._app(scope, receive, send)
        except OverloadError:
            if self._held_back < self._limit:
                await self._pause()
            raise

    async def _pause(self) -> None:
        self._held_back += 1
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self._held_back -= 1


class BodyLimit:
    """Reads a request's body before a route does, and rejects one that is too large or too slow."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limit: int = MAX_BODY,
        log_limit: int = MAX_LOG_BODY,
        seconds: float = BODY_SECONDS,
    ) -> None:
        """`log_limit` holds for submissions of log lines, `limit` elsewhere."""
        self._app = app
        self._limit = limit
        self._log_limit = log_limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body."""
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        limit = self._log_limit if scope["path"].startswith(INGEST) else self._limit
        if not length.isdigit() or len(length) > 18 or int(length) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(self._seconds):
                body = await _read(receive, limit)
        except TimeoutError as exc:
            raise _closing(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from exc
        if body is not None:
            await self._app(scope, _prepend_body(body, receive), send)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Return the body; None if the client went away."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(limit: int) -> ProblemError:
    return _closing(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {limit} bytes")


def _closing(status: HTTPStatus, detail: str) -> ProblemError:
    """Return a problem after which the connection is closed: the rest of the body is not read."""
    return ProblemError(status, detail, headers={"Connection": "close"})


def _prepend_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body first."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
