"""A server of metrics pages on this machine whose answers are bytes, as right or wrong as wanted."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from service.runtime.clock import pause

Behave = Callable[[socket.socket, bytes], None]  # is given the connection and the request's head


def answer(
    body: bytes,
    *,
    status: str = "200 OK",
    media_type: str = "text/plain; version=0.0.4",
    more: str = "",
) -> bytes:
    """Return a whole answer."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{more}"
    )
    return f"{head}Connection: close\r\n\r\n".encode() + body


def sends(content: bytes) -> Behave:
    """Send these bytes and close."""
    return lambda connection, _request: connection.sendall(content)


def hangs(*first: bytes) -> Behave:
    """Send what is given, and then nothing more until the other side gives up."""

    def behave(connection: socket.socket, _request: bytes) -> None:
        for piece in first:
            connection.sendall(piece)
        connection.recv(1)

    return behave


def drips(content: bytes, seconds: float = 0.02) -> Behave:
    """Send one byte after the other, each soon enough."""

    def behave(connection: socket.socket, _request: bytes) -> None:
        for place in range(len(content)):
            connection.sendall(content[place : place + 1])
            pause(seconds)

    return behave


class Pages:
    """A server that runs; `behave` may be changed at any time."""

    def __init__(self, listener: socket.socket, behave: Behave) -> None:
        self._listener = listener
        self.behave = behave
        self.requests: list[bytes] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"{self.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self, tls: ssl.SSLContext | None) -> None:
        """Answer until the listener is closed."""
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection, tls), daemon=True).start()

    def _serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        with suppress(OSError):  # the other side gave up
            encrypted = tls.wrap_socket(connection, server_side=True) if tls else connection
            with encrypted:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += encrypted.recv(65_536)
                self.requests.append(head)
                self.behave(encrypted, head)


@contextmanager
def pages(behave: Behave, tls: ssl.SSLContext | None = None) -> Iterator[Pages]:
    """Run a server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Pages(listener, behave)
        made.scheme = "https" if tls else "http"
        threading.Thread(target=made.run, args=(tls,), daemon=True).start()
        yield made
