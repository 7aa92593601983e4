"""A way to the brokers that spoils one request: it arrives damaged, and those behind it too early.

Clients stay on it because every answer that names a broker's address is rewritten: the host is the
same, and a port is four bytes wherever it stands. The chosen Produce request is held for a moment,
so that the client sends what it may have in flight, and then goes on with one letter of its last
record changed. The broker refuses it (CORRUPT_MESSAGE), and finds the next ones out of order.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from service.clock import monotonic
from service.sandbox.ports import HOST

PRODUCE: Final = 0  # the API's key
QUIET_SECONDS: Final = 0.4  # without a further request: the client has sent what it may
LOOK_SECONDS: Final = 0.05
READ_BYTES: Final = 65_536
# Behind the last letters of the last value come one byte of its record and three of the request.
SPOILED: Final = -20
_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")


def addresses(ports: Mapping[int, int]) -> list[tuple[bytes, bytes]]:
    """Return what answers hold where they name a broker, and what is to stand there instead."""
    return [(_address(port), _address(own)) for port, own in ports.items()]


def whole_frames(buffer: bytearray) -> Iterator[bytes]:
    """Take the requests or answers that have come whole out of a buffer, with their lengths."""
    while len(buffer) >= _LENGTH.size:
        end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
        if len(buffer) < end:
            return
        frame = bytes(buffer[:end])
        del buffer[:end]
        yield frame


def is_produce(frame: bytes) -> bool:
    """Tell whether a request is one that writes records."""
    return bool(_KEY.unpack_from(frame, _LENGTH.size)[0] == PRODUCE)


def spoil(frame: bytes) -> bytes:
    """Return a Produce request with another letter in the value of its last record."""
    spoiled = bytearray(frame)
    spoiled[SPOILED] ^= 1
    return bytes(spoiled)


def _address(port: int) -> bytes:
    return HOST.encode() + _LENGTH.pack(port)


@dataclass(eq=False, slots=True)
class _Link:
    """One connection of a client, and its own one to the broker."""

    client: socket.socket
    broker: socket.socket
    up: bytearray = field(default_factory=bytearray)  # of a request that has not come whole
    down: bytearray = field(default_factory=bytearray)
    held: list[bytes] = field(default_factory=list)  # requests, the first is to be spoiled
    held_at: float = 0.0  # when the last of them came

    def close(self) -> None:
        """Close both sides."""
        self.client.close()
        self.broker.close()


class CorruptingProxy:
    """A port for each broker, served by one thread; close it, or use it as a block."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        """Take the port of each broker by its id, all on the loopback interface."""
        self._selector = selectors.DefaultSelector()
        self._links: dict[socket.socket, _Link] = {}
        self._is_armed, self._is_ending = threading.Event(), threading.Event()
        self._spoiled = 0
        self._listeners: dict[socket.socket, int] = {}
        for port in ports.values():
            listener = socket.create_server((HOST, 0))
            self._listeners[listener] = port
            self._selector.register(listener, selectors.EVENT_READ)
        self._rewrites = addresses(
            {port: listener.getsockname()[1] for listener, port in self._listeners.items()}
        )
        self._thread = threading.Thread(target=self._run, name="corrupting proxy", daemon=True)
        self._thread.start()

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers that lead through here."""
        return ",".join(f"{HOST}:{one.getsockname()[1]}" for one in self._listeners)

    @property
    def spoiled(self) -> int:
        """How many requests were changed so far."""
        return self._spoiled

    def spoil_next(self) -> None:
        """Choose the next Produce request of whatever connection."""
        self._is_armed.set()

    def close(self) -> None:
        """End the thread and every connection."""
        self._is_ending.set()
        self._thread.join()
        for link in set(self._links.values()):
            link.close()
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -------------------------------------------------------------- in its thread
    def _run(self) -> None:
        while not self._is_ending.is_set():
            for key, _ in self._selector.select(LOOK_SECONDS):
                if isinstance(key.fileobj, socket.socket):
                    self._serve(key.fileobj)
            for link in set(self._links.values()):
                if link.held and monotonic() - link.held_at >= QUIET_SECONDS:
                    self._guarded(link, self._let_go)

    def _serve(self, ready: socket.socket) -> None:
        port = self._listeners.get(ready)
        link = self._links.get(ready)
        if port is not None:
            self._accept(ready, port)
        elif link is not None:  # else it was closed in this very turn, with its other side
            self._guarded(link, self._upward if ready is link.client else self._downward)

    def _accept(self, listener: socket.socket, port: int) -> None:
        client, _ = listener.accept()
        try:
            broker = socket.create_connection((HOST, port))
        except OSError:  # a broker that is down: to the client it is just so
            client.close()
            return
        link = _Link(client, broker)
        for side in (client, broker):
            self._links[side] = link
            self._selector.register(side, selectors.EVENT_READ)

    def _guarded(self, link: _Link, step: Callable[[_Link], None]) -> None:
        """Take a step; where either side has gone, so does the link."""
        try:
            step(link)
        except OSError:
            self._drop(link)

    def _upward(self, link: _Link) -> None:
        link.up += _received(link.client)
        for frame in whole_frames(link.up):
            if not link.held and is_produce(frame) and self._is_armed.is_set():
                self._is_armed.clear()
            elif not link.held:
                link.broker.sendall(frame)
                continue
            link.held.append(frame)
            link.held_at = monotonic()

    def _downward(self, link: _Link) -> None:
        link.down += _received(link.broker)
        for frame in whole_frames(link.down):
            link.client.sendall(self._rewritten(frame))

    def _let_go(self, link: _Link) -> None:
        first, *others = link.held
        link.held.clear()
        self._spoiled += 1
        link.broker.sendall(spoil(first) + b"".join(others))

    def _rewritten(self, frame: bytes) -> bytes:
        for there, here in self._rewrites:
            frame = frame.replace(there, here)
        return frame

    def _drop(self, link: _Link) -> None:
        for side in (link.client, link.broker):
            self._links.pop(side, None)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(side)
        link.close()


def _received(side: socket.socket) -> bytes:
    data = side.recv(READ_BYTES)
    if not data:
        raise ConnectionResetError
    return data
