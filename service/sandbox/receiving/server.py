"""A receiver of notifications on this machine's loopback interface."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from rules.errors import SandboxError
from service.sandbox.receiving.recording import Recorder

HOST: Final = "127.0.0.1"
LARGEST: Final = 16 * 2**20  # bytes of a body
IDLE_SECONDS: Final = 30
POLL_SECONDS: Final = 0.05


@contextlib.contextmanager
def receiving(recorder: Recorder, port: int = 0) -> Iterator[str]:
    """Take requests in threads of their own, and yield the address; a port of 0 is any free one.

    Raises:
        SandboxError: the port is not available.
    """
    handler = type("Handler", (_Handler,), {"recorder": recorder})
    try:
        server = _Server((HOST, port), handler)
    except OSError as exc:
        raise SandboxError(f"port {port} is not available: {exc.strerror or exc}") from exc
    thread = threading.Thread(
        target=server.serve_forever, args=(POLL_SECONDS,), name="receiver", daemon=True
    )
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_arguments: object) -> None:
        """Log nothing: a sender may break off."""


class _Handler(http.server.BaseHTTPRequestHandler):
    recorder: Recorder
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._end(HTTPStatus.LENGTH_REQUIRED, is_last=True)
            return
        if len(length) > len(str(LARGEST)) or int(length) > LARGEST:
            self._end(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, is_last=True)
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True  # it broke off: nothing was received
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            answer = self.recorder.take(self.path, headers, body)
        except OSError:
            answer = HTTPStatus.INSUFFICIENT_STORAGE  # not recorded: it has to come again
        self._end(answer)

    def _end(self, status: HTTPStatus, *, is_last: bool = False) -> None:
        body = b"ok" if status == HTTPStatus.OK else status.phrase.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        if is_last:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: the recorder does."""
