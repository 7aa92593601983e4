"""Connections to all brokers of a cluster, driven side by side by one selector in one thread.

Each exchange has its own time limit: a broker that is late costs its own answers and nothing of
the others. A connection that failed, or was late with an answer, is closed and opened again by the
next `connect`. One that is late with its set-up (a frozen broker accepts connections and sends
nothing) stays open, and later rounds wait for it only briefly.
"""

from __future__ import annotations

import math
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.security import Security
from collectors.wire.api import Api
from collectors.wire.connection import Address, Connection, Stage, UnresolvableError
from collectors.wire.failure import ConnectionFailedError, Failure
from rules.facts.gap import GapCause

Answer = bytearray | Failure
UNRESOLVABLE_SECONDS: Final = 30.0  # a resolver may take seconds, and is outside every limit
USABLE_LIFETIME: Final = 0.85  # of the session lifetime that a broker grants (KIP-368)
LATE_AGAIN_SECONDS: Final = 0.5  # for a broker that was already late with its set-up
_UNFINISHED: Final = (Stage.CONNECTING, Stage.TLS, Stage.SETUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One encoded request for one address."""

    address: Address
    api: Api
    version: int
    body: bytes


class Pool:
    """All connections of one cluster; not safe for use by two threads at once."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tls = security.ssl_context()
        self._selector = selectors.DefaultSelector()
        self._connections: dict[Address, Connection] = {}
        self._failures: dict[Address, Failure] = {}
        self._answers: dict[int, Answer] = {}
        self._late: set[Connection] = set()
        self._expires: dict[Address, float] = {}
        self._unresolvable: dict[Address, tuple[float, Failure]] = {}
        self._setup_requests: Counter[str] = Counter()

    def connect(
        self, addresses: Iterable[Address], *, timeout_seconds: float
    ) -> dict[Address, Failure]:
        """Make connections ready, side by side; return why each of the others is not."""
        targets = set(addresses)
        self._begin(targets)
        waiting = [self._connections[a] for a in targets if a in self._connections]
        fresh = [connection for connection in waiting if connection not in self._late]
        begin = time.monotonic()
        self._drive(lambda: _unfinished(fresh), timeout_seconds)
        left = min(LATE_AGAIN_SECONDS, timeout_seconds) - (time.monotonic() - begin)
        self._drive(lambda: _unfinished(waiting), left)
        for connection in waiting:
            if connection.stage in _UNFINISHED:
                self._late.add(connection)
                waited = time.monotonic() - begin
                self._failures[connection.address] = _late(connection, waited)
        return {address: self._failures[address] for address in targets & self._failures.keys()}

    def connect_any(
        self, addresses: Sequence[Address], *, timeout_seconds: float
    ) -> Address | None:
        """Open all addresses side by side and return the first that is ready, None if none is."""
        self._begin(set(addresses))

        def nobody_yet() -> bool:
            stages = [self._connections[a].stage for a in addresses if a in self._connections]
            return Stage.READY not in stages and any(stage in _UNFINISHED for stage in stages)

        self._drive(nobody_yet, timeout_seconds)
        ready = next((address for address in addresses if self.is_ready(address)), None)
        if ready is None:
            for address in addresses:
                if address in self._connections:
                    late = _late(self._connections[address], timeout_seconds)
                    self._fail(self._connections[address], late)
        return ready

    def failure(self, address: Address) -> Failure | None:
        """Why an address is not usable: its newest failure, None if it had none."""
        return self._failures.get(address)

    def is_ready(self, address: Address) -> bool:
        """Whether requests can be sent to this address now."""
        connection = self._connections.get(address)
        return connection is not None and connection.stage is Stage.READY

    def version(self, address: Address, api: Api) -> int | None:
        """Return the newest usable version of `api` there, None if the broker has none."""
        offered = self._connections[address].versions.get(api.key)
        return offered.usable(api) if offered else None

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Send all calls, pipelined per connection; return an answer or a failure for each.

        With `keep_late` a connection that is late is not closed: the caller tries another broker, and
        the answer is thrown away when it comes.
        """
        self._answers = {}
        for token, call in enumerate(calls):
            connection = self._connections.get(call.address)
            if connection is None or connection.stage is not Stage.READY:
                self._answers[token] = self._failures.get(
                    call.address, _not_connected(call.address)
                )
            else:
                connection.send(token, call.api, call.version, call.body)
        self._drive(lambda: len(self._answers) < len(calls), timeout_seconds)
        for connection in list(self._connections.values()):
            if not connection.is_busy:
                continue
            late = _late(connection, timeout_seconds)
            if keep_late:
                self._answers.update(dict.fromkeys(connection.pending_tokens, late))
                connection.abandon()
            else:
                self._fail(connection, late)
        return [self._answers[token] for token in range(len(calls))]

    def take_setup_requests(self) -> Counter[str]:
        """Return how many set-up requests were sent since the last call, by API name."""
        for connection in self._connections.values():
            self._count_setup(connection)
        taken, self._setup_requests = self._setup_requests, Counter()
        return taken

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._connections.values()):
            self._forget(connection)
        self._selector.close()

    def _drive(self, unfinished: Callable[[], bool], timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        for connection in self._connections.values():
            self._selector.modify(connection.socket, connection.interest, connection)
        while unfinished():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            for key, events in self._selector.select(remaining):
                self._advance(key.data, events)

    def _advance(self, connection: Connection, events: int) -> None:
        before = connection.socket
        try:
            for token, answer in connection.on_ready(events):
                self._answers[token] = answer
        except ConnectionFailedError as exc:
            self._answers.update(connection.take_answers())
            self._fail(connection, exc.failure, registered=before)
            return
        if connection.stage is Stage.READY:
            self._late.discard(connection)
            self._note_lifetime(connection)
        if connection.socket is not before:  # TLS wraps the socket in another object
            self._selector.unregister(before)
            self._selector.register(connection.socket, connection.interest, connection)
        else:
            self._selector.modify(connection.socket, connection.interest, connection)

    def _begin(self, addresses: set[Address]) -> None:
        self._drop_stale(addresses)
        for address in addresses:
            self._failures.pop(address, None)
            if address not in self._connections:
                self._open(address)

    def _note_lifetime(self, connection: Connection) -> None:
        """Remember when to connect anew: before the broker closes for want of new credentials."""
        if connection.lifetime is not None:
            usable = connection.lifetime.total_seconds() * USABLE_LIFETIME
            self._expires.setdefault(connection.address, time.monotonic() + usable)

    def _open(self, address: Address) -> None:
        unresolvable = self._unresolvable.get(address)
        if unresolvable is not None and time.monotonic() < unresolvable[0]:
            self._failures[address] = unresolvable[1]
            return
        try:
            connection = Connection(address, self._security, self._tls)
        except UnresolvableError as exc:
            self._unresolvable[address] = (time.monotonic() + UNRESOLVABLE_SECONDS, exc.failure)
            self._failures[address] = exc.failure
            return
        except ConnectionFailedError as exc:
            self._failures[address] = exc.failure
            return
        self._connections[address] = connection
        self._selector.register(connection.socket, connection.interest, connection)

    def _drop_stale(self, addresses: set[Address]) -> None:
        """Drop idle connections that the broker closed meanwhile: nothing may be readable there."""
        for connection in self._connections.values():
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        readable = [key.data for key, _ in self._selector.select(0)] if self._connections else []
        for connection in readable:
            is_idle = connection.stage is Stage.READY and not connection.owes_answer
            if connection.address in addresses and is_idle:
                self._forget(connection)
        now = time.monotonic()
        for address in addresses:
            if now >= self._expires.get(address, math.inf):
                self._forget(self._connections[address])

    def _fail(
        self, connection: Connection, failure: Failure, registered: socket.socket | None = None
    ) -> None:
        self._failures[connection.address] = failure
        for token in connection.pending_tokens:
            self._answers[token] = failure
        self._forget(connection, registered)

    def _forget(self, connection: Connection, registered: socket.socket | None = None) -> None:
        self._count_setup(connection)
        self._selector.unregister(registered or connection.socket)
        connection.close()
        self._late.discard(connection)
        self._expires.pop(connection.address, None)
        self._connections.pop(connection.address, None)

    def _count_setup(self, connection: Connection) -> None:
        self._setup_requests.update(api.name for api in connection.setup_sent)
        connection.setup_sent.clear()


def _unfinished(connections: Iterable[Connection]) -> bool:
    return any(connection.stage in _UNFINISHED for connection in connections)


def _late(connection: Connection, timeout_seconds: float) -> Failure:
    why = f"{connection.address}: no answer within {timeout_seconds:.1f} s"
    return Failure(GapCause.TIMEOUT, why)


def _not_connected(address: Address) -> Failure:
    return Failure(GapCause.UNREACHABLE, f"{address}: not connected")
