"""Builds the HTTP server of a service from its parts."""

from __future__ import annotations

import socket
from typing import Final

from service.api.app import create_app
from service.api.core.admin_services import AdminServices
from service.api.core.answers import ANSWER_SECONDS, ANSWERS_AT_ONCE, Answers
from service.api.core.few_at_once import FewAtOnce
from service.api.core.ports import (
    ApplicationErrorLog,
    Inbox,
    MeasuredHistory,
    PastOffsets,
    Sources,
)
from service.api.core.rights import Tokens
from service.api.core.server import HttpServer, connection_limit, is_loopback
from service.metrics.exposition import Exposition
from service.rounds.latest import Latest
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.settings import HttpSettings
from service.storage.findings.history import FindingHistory
from service.storage.rounds.store import PostgresStore
from service.storage.tokens.tokens import StoredTokens

INGEST_SECONDS: Final = 20.0  # waiting for other submissions included


def make_http_server(  # noqa: PLR0913 - each by its name
    settings: HttpSettings,
    listener: socket.socket,
    *,
    latest: Latest,
    exposition: Exposition,
    store: PostgresStore,
    measured: MeasuredHistory | None,
    past: PastOffsets | None = None,
    inbox: Inbox,
    application_errors: ApplicationErrorLog,
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
            answers=Answers(
                FewAtOnce(
                    in_thread,
                    ANSWERS_AT_ONCE,
                    queue=settings.max_concurrent_requests,
                    seconds=ANSWER_SECONDS,
                    what="the list",
                )
            ),
            in_database=FewAtOnce(in_thread),
            measured=measured,
            past=past,
            in_history=FewAtOnce(in_thread, 1, what="history"),
            inbox=inbox,
            application_errors=application_errors,
            ingesting=FewAtOnce(in_thread, 1, seconds=INGEST_SECONDS, rests=True),
            admin=admin,
        ),
        tokens=Tokens(
            checker,
            static=static,
            in_thread=FewAtOnce(in_thread, 1),
            monotonic=monotonic,
            utc_now=utc_now,
        ),
        trusts_local=is_loopback(listener) and not settings.require_token,
        max_concurrent_requests=settings.max_concurrent_requests,
        log=log,
    )
    connections = connection_limit(settings.max_concurrent_requests)
    return HttpServer(app, listener, max_connections=connections)


def address_of(listener: socket.socket) -> str:
    """Return where a socket listens, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
