"""One non-blocking connection to a broker: connect, TLS, set-up, then pipelined requests.

A connection never waits by itself: `Pool` calls it when its socket is ready. Answers come in the
order of the requests, which Kafka guarantees per connection; a wrong correlation id ends the
connection, since all later answers would be assigned to the wrong requests.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
import struct
from collections import deque
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final

from collectors.security import Security
from collectors.wire import codec, handshake
from collectors.wire.api import Api
from collectors.wire.failure import ConnectionFailedError, Failure
from rules.facts.gap import GapCause

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024  # far above any answer to our requests
MAX_SETUP_BYTES: Final = (
    64 * 1024
)  # likewise, before the connection is ready: who answers is unknown
_FIRST_BYTES: Final = 64 * 1024  # of a buffer; it grows as bytes arrive, not by what is announced
TLS_ALERT: Final = 0x15
_LENGTH: Final = struct.Struct(">i")
_Target = tuple[int, int, int, Any]  # family, type, protocol and address of one socket
_IN_PROGRESS: Final = {errno.EINPROGRESS, errno.EWOULDBLOCK}


class Stage(Enum):
    """How far a connection has come."""

    CONNECTING = auto()
    TLS = auto()
    SETUP = auto()
    READY = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class _Awaited:
    token: int | None  # the caller's own number; None for the connection's own set-up
    correlation_id: int
    api: Api
    version: int
    is_abandoned: bool = False  # nobody waits for the answer any more


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener is."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class UnresolvableError(ConnectionFailedError):
    """The host has no address; another lookup at once would only take time."""


def _reason_of(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Connection:
    """A connection to one address. All methods may raise `ConnectionFailedError`."""

    def __init__(self, address: Address, security: Security, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.stage = Stage.CONNECTING
        self.versions: handshake.Versions = {}
        self.setup_sent: list[Api] = []
        self.lifetime: timedelta | None = None  # after which the broker wants credentials again
        self._security = security
        self._tls = tls
        self._setup = handshake.setup(security)
        self._awaited: deque[_Awaited] = deque()
        self._outgoing = bytearray()
        self._incoming = bytearray(_LENGTH.size)
        self._filled = 0
        self._announced: int | None = None  # bytes of the answer; absent while its length is read
        self._correlation_id = 0
        self._wants_write = True
        self._has_answered = False  # whether any request after the set-up got an answer
        self._answers: list[tuple[int, bytearray]] = []
        self._targets = self._resolve()
        self.socket = self._open_next()

    def _resolve(self) -> deque[_Target]:
        """Return every address that the name has: a listener may be bound to one of them only."""
        try:
            targets = socket.getaddrinfo(
                self.address.host, self.address.port, type=socket.SOCK_STREAM
            )
        except (socket.gaierror, UnicodeError) as exc:
            why = f"{self.address}: the host name cannot be resolved"
            raise UnresolvableError(Failure(GapCause.UNREACHABLE, why)) from exc
        return deque(
            (family, kind, protocol, target) for family, kind, protocol, _, target in targets
        )

    def _open_next(self) -> socket.socket:
        why = "no address"
        while self._targets:
            family, kind, protocol, target = self._targets.popleft()
            try:
                sock = socket.socket(family, kind, protocol)
            except OSError as exc:  # such as an address family that this machine lacks
                why = _reason_of(exc)
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(target)
            if code in {0, *_IN_PROGRESS}:
                return sock
            why = os.strerror(code).lower()
            sock.close()
        raise self._failure(GapCause.UNREACHABLE, why)

    @property
    def interest(self) -> int:
        """Selector events that this connection waits for."""
        if self.stage is Stage.CONNECTING:
            return selectors.EVENT_WRITE
        wants_write = self._wants_write if self.stage is Stage.TLS else bool(self._outgoing)
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if wants_write else 0)

    @property
    def pending_tokens(self) -> list[int]:
        """The caller's numbers of the requests that have no answer yet."""
        return [
            awaited.token
            for awaited in self._awaited
            if awaited.token is not None and not awaited.is_abandoned
        ]

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self.pending_tokens)

    @property
    def owes_answer(self) -> bool:
        """Whether an answer is still to come, abandoned or not."""
        return bool(self._awaited)

    def send(self, token: int, api: Api, version: int, body: bytes) -> None:
        """Queue a request; `token` comes back with its answer."""
        self._queue(token, api, version, body)

    def abandon(self) -> None:
        """Stop waiting for what is owed: the answers will be read and thrown away."""
        self._awaited = deque(
            replace(awaited, is_abandoned=awaited.token is not None) for awaited in self._awaited
        )

    def on_ready(self, events: int) -> list[tuple[int, bytearray]]:
        """Read or write what the socket is ready for; return answered tokens with the bodies."""
        try:
            self._advance(events)
        except ConnectionFailedError:
            raise
        except ssl.SSLCertVerificationError as exc:
            raise self._rejection(f"its certificate is not trusted: {exc.verify_message}") from exc
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as exc:
            raise self._closed_by_broker() from exc
        except ssl.SSLError as exc:
            raise self._rejection(f"TLS failed: {exc.reason or exc}") from exc
        except codec.UnreadableError as exc:
            raise self._failure(GapCause.UNREADABLE, str(exc)) from exc
        except OSError as exc:
            raise self._failure(GapCause.UNREACHABLE, _reason_of(exc)) from exc
        return self.take_answers()

    def take_answers(self) -> list[tuple[int, bytearray]]:
        """Return what was answered since the last call, also when the connection then failed."""
        answers, self._answers = self._answers, []
        return answers

    def close(self) -> None:
        """Close the socket; what was pending stays pending for the caller to fail."""
        self.stage = Stage.CLOSED
        self.socket.close()

    def _advance(self, events: int) -> None:
        if self.stage is Stage.CONNECTING:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code and self._targets:
                self.socket.close()
                self.socket = self._open_next()
                return
            if code:
                raise self._failure(GapCause.UNREACHABLE, os.strerror(code).lower())
            self._begin_tls_or_setup()
        if self.stage is Stage.TLS:
            self._advance_tls()
        if self.stage in {Stage.SETUP, Stage.READY}:
            self._flush()
            if events & selectors.EVENT_READ:
                self._receive()

    def _begin_tls_or_setup(self) -> None:
        if self._tls is None:
            self._begin_setup()
            return
        self.socket = self._tls.wrap_socket(
            self.socket, server_hostname=self.address.host, do_handshake_on_connect=False
        )
        self.stage = Stage.TLS

    def _advance_tls(self) -> None:
        assert_tls: ssl.SSLSocket = self.socket  # type: ignore[assignment]
        try:
            assert_tls.do_handshake()
        except ssl.SSLWantReadError:
            self._wants_write = False
        except ssl.SSLWantWriteError:
            self._wants_write = True
        else:
            self._begin_setup()

    def _begin_setup(self) -> None:
        self.stage = Stage.SETUP
        self._queue_setup(next(self._setup))

    def _queue_setup(self, request: handshake.SetupRequest) -> None:
        self.setup_sent.append(request.api)
        self._queue(None, request.api, request.version, request.body)

    def _continue_setup(self, body: bytearray) -> None:
        try:
            self._queue_setup(self._setup.send(body))
        except StopIteration as done:
            established: handshake.Established = done.value
            self.versions, self.lifetime = established.versions, established.lifetime
            self.stage = Stage.READY
        except ConnectionFailedError as exc:
            raise ConnectionFailedError(
                replace(exc.failure, why=f"{self.address}: {exc.failure.why}")
            ) from exc

    def _queue(self, token: int | None, api: Api, version: int, body: bytes) -> None:
        self._correlation_id += 1
        self._outgoing += codec.frame(api, version, self._correlation_id, body)
        self._awaited.append(_Awaited(token, self._correlation_id, api, version))

    def _flush(self) -> None:
        while self._outgoing:
            try:
                sent = self.socket.send(self._outgoing)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            del self._outgoing[:sent]

    def _receive(self) -> None:
        while True:
            view = memoryview(self._incoming)[self._filled :]
            try:
                count = self.socket.recv_into(view)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            finally:
                view.release()
            if not count:
                raise self._closed_by_broker()
            self._filled += count
            if self._filled == len(self._incoming):
                self._complete()

    def _complete(self) -> None:
        """Go on once the buffer is full: to the answer, to its next bytes, or to the next answer."""
        if self._announced is None:
            self._announced = self._announced_length()
            self._incoming, self._filled = bytearray(min(self._announced, _FIRST_BYTES)), 0
        elif self._filled < self._announced:
            self._incoming += bytes(min(self._filled, self._announced - self._filled))
        else:
            answer, self._incoming = self._incoming, bytearray(_LENGTH.size)
            self._announced, self._filled = None, 0
            self._take_answer(answer)

    def _announced_length(self) -> int:
        (length,) = _LENGTH.unpack(self._incoming)
        most = MAX_ANSWER_BYTES if self.stage is Stage.READY else MAX_SETUP_BYTES
        if not _LENGTH.size <= length <= most:
            raise self._not_kafka(self._incoming)
        return int(length)

    def _take_answer(self, answer: bytearray) -> None:
        (correlation_id,) = _LENGTH.unpack_from(answer)
        if not self._awaited or self._awaited[0].correlation_id != correlation_id:
            raise self._failure(GapCause.UNREADABLE, "answered something that was not requested")
        awaited = self._awaited[0]  # and stays so if its header cannot be read
        del answer[: codec.body_position(awaited.api, awaited.version, answer)]
        self._awaited.popleft()
        if awaited.token is None:
            self._continue_setup(answer)
            self._flush()
            return
        self._has_answered = True
        if not awaited.is_abandoned:
            self._answers.append((awaited.token, answer))

    def _failure(self, cause: GapCause, why: str) -> ConnectionFailedError:
        return ConnectionFailedError(Failure(cause, f"{self.address}: {why}"))

    def _rejection(self, why: str) -> ConnectionFailedError:
        failure = Failure(GapCause.NOT_AUTHORIZED, f"{self.address}: {why}", rejected=True)
        return ConnectionFailedError(failure)

    def _closed_by_broker(self) -> ConnectionFailedError:
        after = f" after {self._awaited[0].api.name} was sent" if self._awaited else ""
        why = f"the broker closed the connection{after}"
        if self.stage is Stage.TLS:
            message = f"{self.address}: {why} during TLS, as a listener does that wants none"
            return ConnectionFailedError(Failure(GapCause.UNREACHABLE, message, rejected=True))
        is_first = self.stage is Stage.READY and bool(self._awaited) and not self._has_answered
        if is_first and not self._security.uses_sasl:
            # The broker may as well have died: only if all addresses do this is it a rejection.
            message = f"{self.address}: {why}, as a listener does that wants SASL"
            return ConnectionFailedError(Failure(GapCause.UNREACHABLE, message, rejected=True))
        return self._failure(GapCause.UNREACHABLE, why)

    def _not_kafka(self, first_bytes: bytearray) -> ConnectionFailedError:
        if first_bytes[0] == TLS_ALERT:
            return self._rejection("the listener speaks TLS: set the security protocol to SSL")
        return self._failure(GapCause.UNREADABLE, "what answers there is not a Kafka broker")
