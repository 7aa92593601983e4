"""Builds the HTTP server."""

from __future__ import annotations

import socket

from service.api.app import create_app
from service.api.core.admin_services import AdminServices
from service.api.core.ports import FewAtOnce, Inbox, Sources
from service.api.core.rights import Tokens
from service.api.core.server import HttpServer, is_loopback
from service.metrics.exposition import Exposition
from service.rounds.latest import Latest
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.settings import HttpSettings
from service.storage.findings.history import FindingHistory
from service.storage.rounds.store import PostgresStore
from service.storage.tokens.tokens import StoredTokens


def make_front(  # noqa: PLR0913 - each by its name
    settings: HttpSettings,
    listener: socket.socket,
    *,
    latest: Latest,
    exposition: Exposition,
    store: PostgresStore,
    inbox: Inbox,
    admin: AdminServices,
    log: Log,
) -> HttpServer:
    """Build the HTTP server on a socket that listens already."""
    checker = StoredTokens(lambda: store.engine, utc_now)
    static = None if settings.token is None else settings.token.get_secret_value()
    app = create_app(
        Sources(
            latest=latest,
            exposition=exposition,
            history=FindingHistory(lambda: store.engine, latest.state.cluster),
            utc_now=utc_now,
            in_thread=in_thread,
            in_database=FewAtOnce(in_thread),
            inbox=inbox,
            ingesting=FewAtOnce(in_thread, 1),
            admin=admin,
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
