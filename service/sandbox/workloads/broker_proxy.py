"""Proxies before the brokers that see every request: one spoils a request, one keeps some back.

Clients stay on a proxy because every answer that names a broker's address is rewritten: the host is
the same, and a port is four bytes wherever it is.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from service.runtime.clock import monotonic
from service.sandbox.cluster.ports import HOST

PRODUCE: Final = 0  # the API's key
POLL_SECONDS: Final = 0.05
READ_BYTES: Final = 65_536
QUIET_SECONDS: Final = 0.4  # without a further request: the client has sent what it may
# Behind the last letters of the last value come one byte of its record and three of the request.
SPOILED: Final = -20
_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")


def addresses(ports: Mapping[int, int]) -> list[tuple[bytes, bytes]]:
    """Return pairs of a broker's address in answers and the proxy's address that replaces it."""
    return [(_address(port), _address(own)) for port, own in ports.items()]


def whole_frames(buffer: bytearray) -> Iterator[bytes]:
    """Take the requests or answers that have come whole out of a buffer, with their lengths.

    Raises:
        ConnectionResetError: what comes is not Kafka's protocol.
    """
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        if length < _KEY.size:
            raise ConnectionResetError
        end = _LENGTH.size + length
        if len(buffer) < end:
            return
        frame = bytes(buffer[:end])
        del buffer[:end]
        yield frame


def is_produce(frame: bytes) -> bool:
    """Return whether a request is one that writes records."""
    return bool(_KEY.unpack_from(frame, _LENGTH.size)[0] == PRODUCE)


def spoil(frame: bytes) -> bytes:
    """Return a Produce request with another letter in the value of its last record."""
    spoiled = bytearray(frame)
    spoiled[SPOILED] ^= 1
    return bytes(spoiled)


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


class BrokerProxy:
    """A port for each broker, served by one thread; close it, or use it as a block.

    It forwards every request at once; subclasses decide otherwise.
    """

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

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _take(self, link: Link, request: bytes) -> None:
        """Decide what becomes of a request."""
        link.broker.sendall(request)

    def _tend(self, link: Link) -> None:
        """Do what is due on a connection; called in every turn."""

    def _part(self, link: Link) -> None:
        """Close a connection's own side to its broker: the client has gone, or the broker has."""
        link.broker.close()

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


class CorruptingProxy(BrokerProxy):
    """Spoils one request: it arrives damaged, and those behind it too early.

    The chosen Produce request is held briefly, so that the client sends what it may have in flight,
    and then goes on with one letter of its last record changed. The broker rejects it
    (CORRUPT_MESSAGE), and finds the next ones out of order.
    """

    def __init__(self, ports: Mapping[int, int]) -> None:
        self._is_armed = threading.Event()
        self.spoiled = 0  # requests that were changed so far
        super().__init__(ports)

    def spoil_next(self) -> None:
        """Choose the next Produce request of whatever connection."""
        self._is_armed.set()

    def _take(self, link: Link, request: bytes) -> None:
        is_chosen = self._is_armed.is_set() and is_produce(request)
        if is_chosen:
            self._is_armed.clear()
        if is_chosen or link.held:
            link.held.append(request)
            link.held_at = monotonic()
        else:
            super()._take(link, request)

    def _tend(self, link: Link) -> None:
        if not link.held or monotonic() - link.held_at < QUIET_SECONDS:
            return
        first, *others = link.held
        link.held.clear()
        self.spoiled += 1
        link.broker.sendall(spoil(first) + b"".join(others))


class StallingProxy(BrokerProxy):
    """Keeps records back once it stalls, and delivers them when their client has given them up.

    So a request is late on its way, as in a network that stalls: the client has closed its
    connection meanwhile, and has gone on over another one.
    """

    def __init__(self, ports: Mapping[int, int]) -> None:
        self._is_stalling = threading.Event()
        self._late: list[tuple[Link, bytes]] = []
        super().__init__(ports)

    def stall(self) -> None:
        """Keep every Produce request from now on."""
        self._is_stalling.set()

    def go_on(self) -> None:
        """Let new Produce requests through; those that were kept stay."""
        self._is_stalling.clear()

    def count_held(self, port: int) -> int:
        """Return how many requests to one broker are kept."""
        return sum(link.port == port for link, _ in self._late)

    def deliver_late(self) -> None:
        """Send what was kept to the brokers that it was for; nobody waits for the answers."""
        for link, request in self._late:
            with contextlib.suppress(OSError):  # of a broker that died meanwhile
                link.broker.sendall(request)

    def close(self) -> None:
        """End the thread and every connection."""
        super().close()
        for link, _ in self._late:
            link.broker.close()

    def _take(self, link: Link, request: bytes) -> None:
        if self._is_stalling.is_set() and is_produce(request):
            self._late.append((link, request))
        else:
            super()._take(link, request)

    def _part(self, link: Link) -> None:
        if all(late is not link for late, _ in self._late):
            super()._part(link)


def _received(side: socket.socket) -> bytes:
    data = side.recv(READ_BYTES)
    if not data:
        raise ConnectionResetError
    return data
