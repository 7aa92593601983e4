"""Builds what answers HTTP requests."""

from __future__ import annotations

import socket

from service.clock import monotonic, utc_now
from service.latest import Latest
from service.log import Log
from service.metrics.exposition import Exposition
from service.settings import HttpSettings
from service.storage.history import FindingHistory
from service.storage.store import PostgresStore
from service.storage.token_check import StoredTokens
from service.threads import in_thread
from service.web.app import create_app
from service.web.desk import Desk
from service.web.ports import FewAtOnce, Inbox, Sources
from service.web.rights import Tokens
from service.web.server import HttpServer, is_loopback


def make_front(  # noqa: PLR0913 - what answers are made of, each by its name
    settings: HttpSettings,
    listener: socket.socket,
    *,
    latest: Latest,
    exposition: Exposition,
    store: PostgresStore,
    inbox: Inbox,
    desk: Desk,
    log: Log,
) -> HttpServer:
    """Build the HTTP server on a socket that listens already."""
    checker = StoredTokens(lambda: store.engine, utc_now)
    static = None if settings.token is None else settings.token.get_secret_value()
    app = create_app(
        Sources(
            latest=latest,
            exposition=exposition,
            history=FindingHistory(lambda: store.engine, latest.look.cluster),
            utc_now=utc_now,
            in_thread=in_thread,
            in_database=FewAtOnce(in_thread),
            inbox=inbox,
            ingesting=FewAtOnce(in_thread, 1),
            desk=desk,
        ),
        tokens=Tokens(checker, static=static, in_thread=FewAtOnce(in_thread), monotonic=monotonic),
        is_loopback=is_loopback(listener),
        max_concurrent_requests=settings.max_concurrent_requests,
        log=log,
    )
    return HttpServer(app, listener, max_concurrent_requests=settings.max_concurrent_requests)


def address_of(listener: socket.socket) -> str:
    """Return where a socket listens, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
