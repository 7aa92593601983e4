"""The way to the database: a URL, or the server that we start in the data directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError

from rules.errors import StoreError
from service.storage.server import EmbeddedServer
from service.storage.translate import translated

APPLICATION_NAME: Final = "tidemark"
CONNECT_SECONDS: Final = 5
STATEMENT_TIMEOUT_MS: Final = 10_000  # below a round's interval: a stuck database is an outage
LOCK_TIMEOUT_MS: Final = 5_000
POOL_SIZE: Final = 5
DRIVER: Final = "postgresql+psycopg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database that answered, and the server to stop if it is ours."""

    engine: Engine
    server: EmbeddedServer | None

    def close(self) -> None:
        """Close all connections, then stop the server if we started it."""
        self.engine.dispose()
        if self.server is not None:
            self.server.stop()


def open_database(url: str | None, data_directory: Path) -> Database:
    """Connect to `url`; without one start PostgreSQL in the data directory.

    The schema is not touched: `schema.upgrade` brings it up, `schema.require_head` refuses.

    Raises:
        StoreError: one line that says what to mend; retryable if the database may only be away.
    """
    if url is not None:
        return Database(engine=_connected(make_engine(_parsed(url))), server=None)
    server = EmbeddedServer.start(data_directory)
    try:
        return Database(engine=_connected(make_engine(server.url)), server=server)
    except StoreError:
        server.stop()
        raise


def make_engine(url: URL) -> Engine:
    """Return an engine whose every connection has our timeouts; nothing connects yet."""
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        pool_timeout=CONNECT_SECONDS,
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": APPLICATION_NAME,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS}"
            f" -c lock_timeout={LOCK_TIMEOUT_MS} -c timezone=UTC",
        },
    )


def described(url: URL) -> str:
    """Return host, port and database; never user or password."""
    place = url.host or url.query.get("host") or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"database {url.database or ''} at {place}{port}"


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as exc:
        raise StoreError(
            "the database URL cannot be read: write postgresql://user:password@host/name",
            retryable=False,
        ) from exc
    if parsed.drivername not in ("postgresql", "postgres", DRIVER):
        raise StoreError(
            f"the database URL begins with {parsed.drivername}://, and only postgresql:// works",
            retryable=False,
        )
    return parsed.set(drivername=DRIVER)


def _connected(engine: Engine) -> Engine:
    try:
        with translated(f"{described(engine.url)} cannot be reached"), engine.connect() as link:
            link.execute(text("SELECT 1"))
    except StoreError:
        engine.dispose()
        raise
    return engine
