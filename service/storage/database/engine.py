"""Connects to the database: by URL, or to the server of the data directory, our own or another process's.

A service owns the server of its data directory. A command that an operator runs meanwhile attaches to
that server; without a running service it starts one, and stops it at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError

from rules.errors import StoreError
from service.runtime.clock import wait_until
from service.storage.database.server import DirectoryInUseError, EmbeddedServer, running_url
from service.storage.database.translate import translate_errors

# Raises StoreError as long as the database has not answered.
EngineSource: TypeAlias = Callable[[], Engine]

APPLICATION_NAME: Final = "tidemark"
CONNECT_SECONDS: Final = 5
STATEMENT_TIMEOUT_MS: Final = 10_000  # below a round's interval: a stuck database is an outage
LOCK_TIMEOUT_MS: Final = 5_000
POOL_SIZE: Final = 5
DRIVER: Final = "postgresql+psycopg"
ATTACH_SECONDS: Final = 20.0  # another process may just be starting its server, or ending it
# The service's own lock keeps other services out, so that a command is all that can hold the server.
OWN_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database that answered, and its server if it is ours to stop."""

    engine: Engine
    server: EmbeddedServer | None

    def close(self) -> None:
        """Close all connections, then stop the server if we started it."""
        self.engine.dispose()
        if self.server is not None:
            self.server.stop()

    def mend(self) -> bool:
        """Restart our own server if it died; return whether that was needed.

        Blocks while it recovers from its log, a minute at most. A database by URL, or of another
        process, is left alone.

        Raises:
            StoreError: the server does not start.
        """
        if self.server is None or not self.server.ensure_running():
            return False
        self.engine.dispose()  # connections to the dead one
        return True


def open_database(
    url: str | None, data_directory: Path, *, attach: bool = False, wait_seconds: float = 0.0
) -> Database:
    """Connect to `url`; without one start PostgreSQL in the data directory.

    The schema is left as it is: `schema.upgrade` upgrades it, `schema.require_head` checks it.

    Args:
        url: postgresql://..., or None.
        data_directory: created if missing; not touched if there is a URL.
        attach: where another process runs the directory's server, use that one; closing then
            leaves it running.
        wait_seconds: how long to wait, without `attach`, for a directory that is in use.

    Raises:
        StoreError: one line that says what to fix; retryable if the database may only be away.
    """
    if url is not None:
        return Database(engine=_connect(make_engine(_parse_url(url))), server=None)
    seconds = ATTACH_SECONDS if attach else wait_seconds
    return _open_in_time(data_directory, seconds, attach=attach)


def make_engine(url: URL) -> Engine:
    """Return an engine whose connections have our timeouts; it does not connect yet."""
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        pool_timeout=CONNECT_SECONDS,
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": APPLICATION_NAME,
            # Whatever the encoding of the database is: JSON is UTF-8, and what it lacks it rejects.
            "client_encoding": "utf8",
            # A server whose machine is gone never answers: the connection has to time out.
            "tcp_user_timeout": STATEMENT_TIMEOUT_MS,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 2,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS}"
            f" -c lock_timeout={LOCK_TIMEOUT_MS} -c timezone=UTC",
        },
    )


def describe_url(url: URL) -> str:
    """Return host, port and database; never user or password."""
    place = url.host or url.query.get("host") or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"database {url.database or ''} at {place}{port}"


def _own(directory: Path) -> Database:
    server = EmbeddedServer.start(directory)
    try:
        return Database(engine=_connect(make_engine(server.url)), server=server)
    except StoreError:
        server.stop()
        raise


def _open_in_time(directory: Path, wait_seconds: float, *, attach: bool) -> Database:
    """Own the server of a directory, or with `attach` use the running one; wait for one of them."""
    opened: list[Database] = []

    def is_open() -> bool:
        try:
            opened.append(_own(directory))
        except DirectoryInUseError:
            url = running_url(directory) if attach else None
            if url is None:
                return False
            opened.append(Database(engine=_connect(make_engine(url)), server=None))
        return True

    if wait_seconds > 0 and wait_until(is_open, timeout_seconds=wait_seconds):
        return opened[0]
    if not attach:
        return _own(directory)
    raise StoreError(
        f"data directory {directory} is in use by another process whose PostgreSQL does not answer",
        retryable=True,
    )


def _parse_url(url: str) -> URL:
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


def _connect(engine: Engine) -> Engine:
    try:
        with (
            translate_errors(f"{describe_url(engine.url)} cannot be reached"),
            engine.connect() as link,
        ):
            link.execute(text("SELECT 1"))
    except StoreError:
        engine.dispose()
        raise
    return engine
