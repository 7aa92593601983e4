"""A server on this machine that answers as a Tidemark does, from documents by path."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

PREFIX: Final = "/api/v1/"
STAMP: Final = {"as_of": "2025-06-02T12:00:00Z", "is_current": True}


class Handler(BaseHTTPRequestHandler):
    """Answers as a Tidemark does, from documents by path; others are problems of 404."""

    documents: ClassVar[dict[str, Any]] = {}
    denies: ClassVar[bool] = False
    default: ClassVar[Any] = None  # document of every other path
    kind: ClassVar[str] = "application/problem+json"  # of a problem
    queried: ClassVar[threading.Event] = threading.Event()
    answers: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        type(self).queried.set()
        type(self).answers.wait(30)
        path = self.path.partition("?")[0].removeprefix(PREFIX)
        document = self.documents.get(path, self.default)
        status = 401 if self.denies else 404 if document is None else 200
        problem = {"title": "no", "status": status, "detail": "there is no such thing."}
        body = json.dumps(problem if status > 200 else document).encode()
        kind = self.kind if status > 200 else "application/json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # it was interrupted meanwhile
            self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def log_message(self, *words: object) -> None:
        """Print nothing."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Yield the address of a server without documents, which answers at once; 0: a free port."""
    Handler.documents, Handler.denies, Handler.default = {}, False, None
    Handler.kind = "application/problem+json"
    Handler.queried.clear()
    Handler.answers.set()
    http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        Handler.answers.set()
        http.shutdown()
        thread.join()
        http.server_close()


def page(*items: dict[str, Any]) -> dict[str, Any]:
    """Return the only page of a list."""
    return {**STAMP, "items": list(items), "next": None}
