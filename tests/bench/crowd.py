"""Clients of a service that is under attack: those that hinder, those that work, and probes that are timed."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from service.runtime.clock import monotonic

Address = tuple[str, int]

INGEST: Final = "/api/v1/ingest/broker-log"
DRIP_SECONDS: Final = 0.2
AGAIN_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 30.0
PROBE_EVERY_SECONDS: Final = 0.05
PROBES: Final = ("/livez", "/metrics")


@dataclass(frozen=True, slots=True)
class Timed:
    """The answers to one kind of request; 0 stands for the status of a request without answer."""

    seconds: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        ordered = sorted(self.seconds) or [0.0]
        answered = sum(status == 200 for status in self.statuses)
        at = {share: ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in SHARES}
        shares = ", ".join(
            f"p{share * 100:g} {seconds * 1000:,.0f} ms" for share, seconds in at.items()
        )
        return f"{answered} of {len(self.statuses)} answered, {shares}, max {ordered[-1] * 1000:,.0f} ms"


SHARES: Final = (0.5, 0.99)


async def hinder(address: Address, connections: int) -> None:
    """Hold so many slow connections of all kinds, without a token, and make each again once it is closed."""
    kinds = itertools.cycle([_slow_body, _slow_body, _slow_body, _slow_headers, _silent])
    async with asyncio.TaskGroup() as group:
        for kind in itertools.islice(kinds, connections):
            group.create_task(_again(address, kind))


async def guess(address: Address, clients: int) -> None:
    """Try secrets, each another one, without a pause."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_head("GET", "/metrics", f"tidemark_{secrets.token_urlsafe(32)}"))
        await reader.read()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(_again(address, once, 0.0))


async def load(
    address: Address, requests: Sequence[bytes], clients: int, timed: dict[str, Timed]
) -> None:
    """Send requests in turn with so many clients, each the next one when it is answered."""
    turn = itertools.cycle(requests)

    async def client() -> None:
        while True:
            await ask(address, next(turn), timed)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())


async def probe(address: Address, secret: str, timed: dict[str, Timed], seconds: float) -> None:
    """Send probes and scrapes for so long, whether earlier ones were answered or not."""
    until = monotonic() + seconds
    turn = itertools.cycle(PROBES)
    async with asyncio.TaskGroup() as group:
        while monotonic() < until:
            path = next(turn)
            group.create_task(ask(address, request("GET", path, secret), timed))
            await asyncio.sleep(PROBE_EVERY_SECONDS)


def request(method: str, target: str, secret: str, body: bytes = b"") -> bytes:
    """Return a request after which the connection closes."""
    length = f"Content-Length: {len(body)}\r\nContent-Type: text/plain\r\n" if body else ""
    return _head(method, target, secret, length) + body


async def ask(address: Address, sent: bytes, timed: dict[str, Timed]) -> None:
    """Send a request on a connection of its own, and note the answer under method and path."""
    name = sent.split(b"\r\n", 1)[0].decode().removesuffix(" HTTP/1.1")
    begin, status = monotonic(), 0
    with suppress(OSError, TimeoutError, IndexError, ValueError):
        async with asyncio.timeout(ANSWER_SECONDS):
            status = await _status(address, sent)
    answers = timed.setdefault(name, Timed())
    answers.seconds.append(monotonic() - begin)
    answers.statuses.append(status)


async def _status(address: Address, sent: bytes) -> int:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        answer = await reader.read()
        head, _, body = answer.partition(b"\r\n\r\n")
        is_whole = f"content-length: {len(body)}".encode() in head.lower()
        return int(head.split(b" ")[1]) if is_whole else 0
    finally:
        writer.close()


Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _again(address: Address, client: Client, pause: float = AGAIN_SECONDS) -> None:
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*address)
            try:
                await client(reader, writer)
            finally:
                writer.close()
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
