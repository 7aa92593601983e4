"""Clients of a crowded service: those that hinder, those that work, and probes that are timed."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from service.runtime.clock import monotonic

Address = tuple[str, int]
Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

INGEST: Final = "/api/v1/ingest/broker-log"
DRIP_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 30.0
PROBE_SECONDS: Final = 0.1
SCRAPE_SECONDS: Final = 1.0
NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Timed:
    """The answers to one kind of request; a request without answer has status 0."""

    seconds: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        middle, high = (ordered[int(share * len(ordered))] for share in (0.5, 0.99))
        statuses = ", ".join(
            f"{count} x {status or 'no answer'}" for status, count in Counter(self.statuses).items()
        )
        shown = [f"{seconds * 1000:,.0f}" for seconds in (middle, high, ordered[-1])]
        return f"{statuses}; p50 {shown[0]}, p99 {shown[1]}, max {shown[2]} ms"


async def hinder(address: Address, connections: int) -> None:
    """Hold so many slow connections of all kinds, without a token, and make each again once it is closed."""
    kinds = itertools.cycle([_slow_body, _slow_body, _slow_body, _slow_headers, _silent])
    async with asyncio.TaskGroup() as group:
        for kind in itertools.islice(kinds, connections):
            group.create_task(_again(address, kind, AGAIN_SECONDS))


async def guess(address: Address, clients: int) -> None:
    """Try secrets, each another one, without a pause."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_head("GET", "/metrics", f"tidemark_{secrets.token_urlsafe(32)}"))
        await reader.read()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(_again(address, once, 0.0))


async def load(
    address: Address, requests: Iterator[bytes], clients: int, timed: dict[str, Timed]
) -> None:
    """Send requests in turn with so many clients, each the next one when it is answered."""

    async def client() -> None:
        while True:
            await ask(address, next(requests), timed)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())


async def probe(address: Address, secret: str, timed: dict[str, Timed], seconds: float) -> None:
    """Send probes and scrapes for so long, whether earlier ones were answered or not."""
    until = monotonic() + seconds

    async def repeat(path: str, pause: float) -> None:
        sent = request("GET", path, secret)
        async with asyncio.TaskGroup() as answers:
            while monotonic() < until:
                answers.create_task(ask(address, sent, timed))
                await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        group.create_task(repeat("/livez", PROBE_SECONDS))
        group.create_task(repeat("/metrics", SCRAPE_SECONDS))


def request(
    method: str, target: str, secret: str, body: bytes = b"", headers: Mapping[str, str] = NONE
) -> bytes:
    """Return a request after which the connection closes."""
    length = {"Content-Length": str(len(body))} if body else {}
    more = {"Accept-Encoding": "gzip", **length, **headers}
    lines = (f"{name}: {value}\r\n" for name, value in more.items())
    return _head(method, target, secret, "".join(lines)) + body


async def ask(address: Address, sent: bytes, timed: dict[str, Timed]) -> None:
    """Send a request on a connection of its own, and note the answer under method and target."""
    name = sent.split(b"\r\n", 1)[0].decode().removesuffix(" HTTP/1.1")
    begin, status = monotonic(), 0
    with suppress(OSError, TimeoutError, IndexError, ValueError):
        async with asyncio.timeout(ANSWER_SECONDS):
            status = await _status(address, sent)
    answers = timed.setdefault(name, Timed())
    answers.seconds.append(monotonic() - begin)
    answers.statuses.append(status)


async def _status(address: Address, sent: bytes) -> int:
    """Return the status of an answer that arrives whole, else 0."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        is_whole = f"content-length: {len(body)}".encode() in head.lower()
        return int(head.split(b" ")[1]) if is_whole else 0
    finally:
        writer.transport.abort()


async def _again(address: Address, client: Client, pause: float) -> None:
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*address)
            try:
                await client(reader, writer)
            finally:
                writer.transport.abort()
        await asyncio.sleep(pause)


async def _slow_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head("POST", INGEST, "", "Content-Length: 1000000\r\n"))
    await _drip(reader, writer, b"x")


async def _slow_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /livez HTTP/1.1\r\n")
    await _drip(reader, writer, b"X-More: x\r\n")


async def _silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send a piece at a time until the server closes, whatever it answers."""
    closed = asyncio.ensure_future(reader.read())
    try:
        while not closed.done():
            writer.write(piece)
            await asyncio.wait([closed], timeout=DRIP_SECONDS)
        closed.result()
    finally:
        closed.cancel()


def _head(method: str, target: str, secret: str, more: str = "") -> bytes:
    bearer = f"Authorization: Bearer {secret}\r\n" if secret else ""
    line = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    return f"{line}{bearer}{more}\r\n".encode()
