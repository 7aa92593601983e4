"""A real HTTP server in an event loop of its own, and clients that speak bytes to it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from starlette.types import ASGIApp

from service.api.core.protocol import GuardedProtocol
from service.api.core.server import HttpServer, bind
from service.runtime.clock import wait_until


class Impatient(GuardedProtocol):
    """Waits for slow clients only as long as a test does."""

    header_seconds = 0.5
    write_seconds = 0.5


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Peer:
    """A client that sends what it likes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address[:2], timeout=180)

    def send(self, data: bytes) -> Peer:
        self.socket.sendall(data)
        return self

    def send_as_far_as_it_goes(self, data: bytes) -> Peer:
        """Send to a server that may close before it has everything."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def read(self) -> bytes:
        """Return all until the server closes."""
        found = b""
        try:
            while piece := self.socket.recv(65536):
                found += piece
        except ConnectionResetError:
            pass
        return found

    def read_until(self, end: bytes) -> None:
        """Read up to the end of one answer; the connection stays open."""
        found = b""
        while not found.endswith(end):
            piece = self.socket.recv(65536)
            assert piece, f"the server closed after {found!r}"
            found += piece

    def answer(self) -> Answer:
        return parsed(self.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def asking(path: bytes) -> bytes:
    """Return a request after which the connection closes."""
    return b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def parsed(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *headers = head.decode("latin-1").split("\r\n")
    pairs = (header.partition(": ") for header in headers)
    named = {name.lower(): value for name, _, value in pairs}
    return Answer(int(line.split(" ")[1]), named, body)


class Served:
    """A running server."""

    def __init__(self, server: HttpServer, address: tuple[str, int]) -> None:
        self.address = address
        self.server = server
        self.thread = threading.Thread(target=lambda: asyncio.run(server.run()), daemon=True)
        self.thread.start()

    def peer(self) -> Peer:
        return Peer(self.address)

    def get(self, target: str, *headers: str, method: str = "GET") -> Answer:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        with self.peer() as peer:
            return peer.send("\r\n".join([*lines, "", ""]).encode()).answer()

    def ends(self) -> bool:
        self.server.stop()
        return wait_until(lambda: not self.thread.is_alive(), timeout_seconds=180)


@contextmanager
def serving(app: ASGIApp, *, host: str = "127.0.0.1", connections: int = 256) -> Iterator[Served]:
    """Serve an application until the block ends."""
    bound = bind(host, 0)
    address: tuple[str, int] = bound.getsockname()[:2]
    served = Served(
        HttpServer(app, bound, max_connections=connections, protocol=Impatient), address
    )
    try:
        yield served
    finally:
        assert served.ends(), "the server did not stop in time"
