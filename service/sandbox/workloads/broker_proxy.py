"""A proxy before the brokers that sees every request; subclasses decide what becomes of it.

Clients stay on it because every answer that names a broker's address is rewritten: the host is the
same, and a port is four bytes wherever it is.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from service.sandbox.cluster.ports import HOST

PRODUCE: Final = 0  # the API's key
POLL_SECONDS: Final = 0.05
READ_BYTES: Final = 65_536
_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")


def addresses(ports: Mapping[int, int]) -> list[tuple[bytes, bytes]]:
    """Return pairs of a broker's address in answers and the proxy's address that replaces it."""
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
    """Return whether a request is one that writes records."""
    return bool(_KEY.unpack_from(frame, _LENGTH.size)[0] == PRODUCE)


def _address(port: int) -> bytes:
    return HOST.encode() + _LENGTH.pack(port)


@dataclass(eq=False, slots=True)
class Link:
    """One connection of a client, and its own one to a broker."""

    client: socket.socket
    broker: socket.socket
    port: int  # of the broker
    up: bytearray = field(default_factory=bytearray)  # of a request that has not come whole
    down: bytearray = field(default_factory=bytearray)
    held: list[bytes] = field(default_factory=list)  # requests that have not been forwarded
    held_at: float = 0.0  # when the last of them came, by a monotonic clock


class BrokerProxy(ABC):
    """A port for each broker, served by one thread; close it, or use it as a block."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        """Take the port of each broker by its id, all on the loopback interface."""
        self._selector = selectors.DefaultSelector()
        self._links: dict[socket.socket, Link] = {}
        self._is_ending = threading.Event()
        self._listeners: dict[socket.socket, int] = {}
        for port in ports.values():
            listener = socket.create_server((HOST, 0))
            self._listeners[listener] = port
            self._selector.register(listener, selectors.EVENT_READ)
        self._rewrites = addresses(
            {port: listener.getsockname()[1] for listener, port in self._listeners.items()}
        )
        self._thread = threading.Thread(target=self._run, name="broker proxy", daemon=True)
        self._thread.start()

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers that lead through here."""
        return ",".join(f"{HOST}:{listener.getsockname()[1]}" for listener in self._listeners)

    def close(self) -> None:
        """End the thread and every connection."""
        self._is_ending.set()
        self._thread.join()
        for link in set(self._links.values()):
            link.client.close()
            link.broker.close()
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

    # -------------------------------------------------------------- for subclasses, in the thread
    @abstractmethod
    def _take(self, link: Link, request: bytes) -> None:
        """Decide what becomes of a request."""

    @abstractmethod
    def _tend(self, link: Link) -> None:
        """Do what is due on a connection; called in every turn."""

    def _part(self, link: Link) -> None:
        """Close a connection's own side to its broker: the client has gone, or the broker has."""
        link.broker.close()

    # -------------------------------------------------------------- in the thread
    def _run(self) -> None:
        while not self._is_ending.is_set():
            for key, _ in self._selector.select(POLL_SECONDS):
                if isinstance(key.fileobj, socket.socket):
                    self._serve(key.fileobj)
            for link in set(self._links.values()):
                self._guarded(link, self._tend)

    def _serve(self, ready: socket.socket) -> None:
        port = self._listeners.get(ready)
        link = self._links.get(ready)
        if port is not None:
            self._accept(ready, port)
        elif link is not None:  # else it was dropped in this very turn, with its other side
            self._guarded(link, self._upward if ready is link.client else self._downward)

    def _accept(self, listener: socket.socket, port: int) -> None:
        client, _ = listener.accept()
        try:
            broker = socket.create_connection((HOST, port))
        except OSError:  # a broker that is down: to the client it is just so
            client.close()
            return
        link = Link(client, broker, port)
        for side in (client, broker):
            self._links[side] = link
            self._selector.register(side, selectors.EVENT_READ)

    def _guarded(self, link: Link, step: Callable[[Link], None]) -> None:
        """Take a step; where either side has gone, so does the link."""
        try:
            step(link)
        except OSError:
            self._drop(link)

    def _upward(self, link: Link) -> None:
        link.up += _received(link.client)
        for frame in whole_frames(link.up):
            self._take(link, frame)

    def _downward(self, link: Link) -> None:
        link.down += _received(link.broker)
        for frame in whole_frames(link.down):
            link.client.sendall(self._rewritten(frame))

    def _rewritten(self, frame: bytes) -> bytes:
        for there, here in self._rewrites:
            frame = frame.replace(there, here)
        return frame

    def _drop(self, link: Link) -> None:
        for side in (link.client, link.broker):
            self._links.pop(side, None)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(side)
        link.client.close()
        self._part(link)


def _received(side: socket.socket) -> bytes:
    data = side.recv(READ_BYTES)
    if not data:
        raise ConnectionResetError
    return data
