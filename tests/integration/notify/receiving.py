"""Receivers on this machine that record what they get, and answer as a test wants."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from service.alerting.sending.address_guard import AddressGuard

DATA: Final = Path(__file__).parents[2] / "data"
CERTIFICATE: Final = DATA / "localhost.pem"
KEY: Final = DATA / "localhost-key.pem"
OPEN: Final = AddressGuard.of(["127.0.0.0/8", "::1/128"])

Handler = http.server.BaseHTTPRequestHandler
Answer = Callable[[Handler], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """One request."""

    path: str
    headers: dict[str, str]  # names in small letters
    body: bytes


@dataclass(slots=True, kw_only=True)
class Receiver:
    """A receiver that runs."""

    address: str  # a URL without a path
    port: int
    got: list[Got] = field(default_factory=list)
    connections: list[str] = field(default_factory=list)  # whom they came from
    server_names: list[str | None] = field(default_factory=list)  # that TLS was asked for
    is_over: threading.Event = field(default_factory=threading.Event)  # for answers that never end


def status(code: int, body: bytes = b"ok", **headers: str) -> Answer:
    """Return an answer."""

    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def raw(text: bytes) -> Answer:
    """Return an answer that is given as bytes, whatever HTTP says, and ends the connection."""

    def answer(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(text)

    return answer


def nothing(handler: Handler) -> None:
    """End the connection without an answer."""
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """End the connection so that the other side gets an error."""
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


@contextlib.contextmanager
def receiving(
    answer: Answer | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: bool = False,
    asks_who: bool = False,
) -> Iterator[Receiver]:
    """Run a receiver; `answer` is asked for each request. `asks_who`: for a client's certificate."""
    server = _Server((host, port), _Recorder)
    number = server.server_address[1]
    made = Receiver(address=f"http{'s' * tls}://{host}:{number}", port=number)
    server.RequestHandlerClass = type(
        "Recorder", (_Recorder,), {"receiver": made, "answer": staticmethod(answer or status(200))}
    )
    if tls:
        server.socket = _secured(made, asks_who=asks_who).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_arguments: object) -> None:
        """Say nothing: connections are broken on purpose."""


class _Recorder(Handler):
    receiver: Receiver
    answer: Answer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self) -> None:
        self.receiver.connections.append(str(self.client_address[0]))
        super().setup()

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.got.append(Got(path=self.path, headers=headers, body=body))
        self.answer(self)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def _secured(made: Receiver, *, asks_who: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    if asks_who:
        context.verify_mode = ssl.CERT_REQUIRED

    def note(_connection: object, name: str | None, _context: object) -> None:
        made.server_names.append(name)

    context.sni_callback = note
    return context
