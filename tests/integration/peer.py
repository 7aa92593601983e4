"""A scripted broker on loopback: says what a test tells it to, byte by byte."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.security import Security, SecurityProtocol
from collectors.wire.blocks import read_list_offsets
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Answer
from tests.unit.collectors.wire.messages import api_versions_answer, list_offsets_answer

API_VERSIONS_KEY: Final = 18
LIST_OFFSETS_KEY: Final = 2
OFFERED: Final = {LIST_OFFSETS_KEY: (1, 10), API_VERSIONS_KEY: (0, 4)}


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request that came in."""

    api_key: int
    correlation_id: int


class Peer:
    """The broker's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def request(self) -> Request:
        """Wait for the next request; EOFError when the client is gone."""
        (length,) = struct.unpack(">i", self._exactly(4))
        api_key, _, correlation_id = struct.unpack_from(">hhi", self._exactly(length))
        return Request(api_key, correlation_id)

    def answer(
        self,
        request: Request,
        body: bytes,
        *,
        correlation_id: int | None = None,
        tags: bytes = b"\0",
    ) -> None:
        """Answer a request, with another correlation id or tagged fields of the header."""
        self.raw(framed(request, body, correlation_id, tags))

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def versions(self, offered: Mapping[int, tuple[int, int]] = OFFERED) -> None:
        """Answer the request with which every connection begins."""
        self.answer(self.request(), api_versions_answer(offered))

    def silence(self) -> None:
        """Read whatever comes and say nothing, until the client goes."""
        while self._socket.recv(4096):
            pass

    def hang_up(self) -> None:
        """Close the connection, so that the client can see it when this returns."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self._socket.recv(length - len(data))
            if not more:
                raise EOFError
            data += more
        return data


def framed(
    request: Request, body: bytes, correlation_id: int | None = None, tags: bytes = b"\0"
) -> bytes:
    """Return an answer with its length and header."""
    number = request.correlation_id if correlation_id is None else correlation_id
    head = struct.pack(">i", number) + (b"" if request.api_key == API_VERSIONS_KEY else tags)
    return struct.pack(">i", len(head) + len(body)) + head + body


def body_with(offset: int) -> bytes:
    """Return a ListOffsets answer with one offset."""
    return list_offsets_answer({"orders": [(0, 0, offset, 1)]})


def counting(peer: Peer) -> None:
    """Answer every request with its number."""
    peer.versions()
    number = 0
    while True:
        peer.answer(peer.request(), body_with(number))
        number += 1


def only_versions(peer: Peer) -> None:
    """Let the client in and never answer it."""
    peer.versions()
    peer.silence()


Script = Callable[[Peer], object]


@contextmanager
def listening(
    script: Script, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Address]:
    """Run `script` for every connection that comes in, each in a thread of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, 0), family=family))
        accepted: list[socket.socket] = []
        threads: list[threading.Thread] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    sock = listener.accept()[0]
                    accepted.append(sock)
                    thread = threading.Thread(target=_talk, args=(sock, script, tls))
                    threads.append(thread)
                    thread.start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield Address(host, listener.getsockname()[1])
        finally:
            _stop(listener)
            acceptor.join()
            for sock in accepted:
                _stop(sock)
            for thread in threads:
                thread.join()


def _stop(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _talk(sock: socket.socket, script: Script, tls: ssl.SSLContext | None) -> None:
    with sock, suppress(OSError, EOFError):
        if tls is None:
            script(Peer(sock))
            return
        with tls.wrap_socket(sock, server_side=True) as secured:
            script(Peer(secured))


def offset_of(answer: Answer) -> int:
    """Return the offset that `body_with` put in."""
    assert isinstance(answer, bytearray), answer
    return int(read_list_offsets(answer)[0].offset[0])


def failure_of(answer: Answer | None) -> Failure:
    """Return the failure that is in place of an answer."""
    assert isinstance(answer, Failure)
    return answer


def has_ipv6() -> bool:
    """Whether this machine listens on ::1."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


# Made with `openssl req -x509 -nodes -days 36500` for localhost and 127.0.0.1; guards nothing.
DATA: Final = Path(__file__).parent.parent / "data"
CERTIFICATE: Final = DATA / "localhost.pem"
KEY: Final = DATA / "localhost-key.pem"


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    return context


def trusting(ca: Path | None, *, check_hostname: bool = True) -> Security:
    return Security(
        protocol=SecurityProtocol.SSL,
        ssl_ca_location=str(ca) if ca else None,
        ssl_check_hostname=check_hostname,
    )
