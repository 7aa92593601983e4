"""The connection of one client: uvicorn's protocol with limits on time and number that it lacks.

A client that sends slowly, reads slowly or opens hundreds of connections must not affect the others:
when there are too many connections, the idle one is dropped that has been waited for longest, however
much it has sent of a request or of a body that is not read any more. Those without the right to what they
last requested go first, so that whoever has none cannot push out whoever has one.

A request that is not HTTP is answered in the form of every other error, and the connection stays open
briefly: closed at once with bytes unread, it would be reset, and the answer lost.
"""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from http import HTTPStatus
from operator import itemgetter
from typing import Final

import h11
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.api.core.access import GRANT
from service.api.core.problems import MEDIA_TYPE, ProblemError, body_of

# From the start of a connection, or the first byte of a further request, to the end of its headers.
HEADER_SECONDS: Final = 10.0
WRITE_SECONDS: Final = 60.0  # until a client has read what is written
LINGER_SECONDS: Final = 1.0
LOOKED_UP: Final = 64  # connections that are dropped next
# Whether the last request was granted, whether its right is being checked, whether bytes of an answer are unsent,
# and since when the client is awaited.
Worth = tuple[bool, bool, bool, float]


class GuardedProtocol(H11Protocol):
    """Serves one connection."""

    header_seconds = HEADER_SECONDS
    write_seconds = WRITE_SECONDS
    _sending: asyncio.TimerHandle | None = None  # runs while a request is awaited
    _reading: asyncio.TimerHandle | None = None  # runs while the client does not read
    _is_rejected = False
    _is_dropped = False
    _waiting_since = 0.0  # by the loop's clock: since when its client owes a request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; if there are too many, drop an idle one, or this one if none is."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        most, self.limit_concurrency = self.limit_concurrency, None  # no request is rejected by it
        if most is not None and len(self.connections) > most:
            self._drop_one()
        if not self._is_dropped:
            self._watch_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for timer in (self._sending, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process what the client sends; ignore it once the client was rejected."""
        if self._is_rejected:
            return
        super().data_received(data)
        self._watch_sending()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Pause writing, and abort if the client does not read in time."""
        super().pause_writing()
        self._reading = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Resume writing: the client has read."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP request, or a request with too long a line or headers."""
        self._refuse(ProblemError(HTTPStatus.BAD_REQUEST, msg))

    def _drop_one(self) -> None:
        kept = self.server_state
        idlest = kept.idlest(self) if isinstance(kept, Connections) else None
        (idlest or self).drop()

    @property
    def is_idle(self) -> bool:
        """Whether no answer is owed: it has begun, and answers are sent in one piece.

        Nor is one owed to a client that has not sent all of a body, unless it has the right to what it
        requests. A dropped connection does not count.
        """
        if self._is_dropped:
            return False
        return _is_begun(self.cycle) or (not self._is_granted and self.cycle.more_body)

    def worth(self) -> Worth:
        """Return the order in which idle connections are dropped: the longest awaited one first.

        Before it come all whose last request was denied or is not complete, and among them last those
        whose right is being checked; after it those with unsent bytes of an answer.
        """
        is_unsent = self.transport.get_write_buffer_size() > 0
        return self._is_granted, not _is_begun(self.cycle), is_unsent, self._waiting_since

    @property
    def _is_granted(self) -> bool:
        """Whether the client has the right to what it last requested."""
        return _has_grant(self.scope)

    def drop(self) -> None:
        """Abort the connection; what its client has not read is lost."""
        self._is_dropped = True
        self.transport.abort()

    def _watch_sending(self) -> None:
        """Start the timer when a request is awaited, and stop it when its headers are complete."""
        is_owed = _is_over(self.cycle)
        if is_owed and self._sending is None:
            self._sending = self.loop.call_later(self.header_seconds, self._too_slow)
        elif not is_owed and self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _too_slow(self) -> None:
        self._refuse(ProblemError(HTTPStatus.REQUEST_TIMEOUT, "the request came too slowly"))

    def _refuse(self, problem: ProblemError) -> None:
        self._is_rejected = True
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE) or self.transport.is_closing():
            self.transport.close()  # another answer went out before
            return
        body = body_of(problem, None)
        headers = [
            ("Content-Type", MEDIA_TYPE),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        phrase = problem.status.phrase.encode()
        answer = h11.Response(status_code=problem.status, headers=headers, reason=phrase)
        output = self.conn.send(answer) + self.conn.send(h11.Data(data=body))
        self.transport.write(output + self.conn.send(h11.EndOfMessage()))
        with suppress(OSError):  # the client is gone
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


class Connections(ServerState):
    """The connections of a server, and which of them are dropped next."""

    def __init__(self) -> None:
        super().__init__()
        self._next: list[tuple[Worth, GuardedProtocol]] = []  # the first at the end

    def idlest(self, newcomer: GuardedProtocol) -> GuardedProtocol | None:
        """Return the idle connection that is dropped first, None if none is idle.

        Some are looked up at once: to go through a thousand for each that comes would take longer than
        to serve it.
        """
        return self._take() or self._take_of_all(newcomer)

    def _take(self) -> GuardedProtocol | None:
        while self._next:
            worth, connection = self._next.pop()
            is_open = connection in self.connections
            if is_open and connection.is_idle and connection.worth() == worth:
                return connection
        return None

    def _take_of_all(self, newcomer: GuardedProtocol) -> GuardedProtocol | None:
        idle = (
            (connection.worth(), connection)
            for connection in self.connections
            if isinstance(connection, GuardedProtocol)
            and connection.is_idle
            and connection is not newcomer
        )
        first = heapq.nsmallest(LOOKED_UP, idle, key=itemgetter(0))
        # What is worth more waits: meanwhile another may come to be worth less.
        self._next = [entry for entry in reversed(first) if entry[0][:-1] == first[0][0][:-1]]
        return self._take()


def _has_grant(scope: HTTPScope | None) -> bool:
    """Return whether a request was granted; uvicorn has no scope before the first one."""
    return scope is not None and GRANT in scope


def _is_begun(cycle: RequestResponseCycle | None) -> bool:
    """Return whether no answer is awaited; uvicorn has no cycle before the first request."""
    return cycle is None or cycle.response_started


def _is_over(cycle: RequestResponseCycle | None) -> bool:
    """Return whether no answer is under way."""
    return cycle is None or cycle.response_complete
