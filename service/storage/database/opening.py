"""Opens the database for a command, also while a service is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from rules.errors import StoreError
from service.settings import Settings
from service.storage.database import running_role, schema
from service.storage.database.engine import Database, open_database
from service.storage.database.server import has_files


def has_database(settings: Settings) -> bool:
    """Return whether a database is configured by URL or exists in the data directory."""
    return settings.database.url is not None or has_files(settings.service.data_directory())


def open_store(settings: Settings) -> Database:
    """Open the configured database; the server of the data directory may belong to a service.

    Raises:
        StoreError: as `open_database`.
    """
    url = settings.database.url
    directory = settings.service.data_directory()
    return open_database(url.get_secret_value() if url else None, directory, attach=True)


@contextmanager
def open_existing(settings: Settings) -> Iterator[Engine]:
    """Open an existing database of any schema, and close it at the end.

    Raises:
        StoreError: there is none in the data directory; none is created.
    """
    if not has_database(settings):
        raise StoreError(
            f"there is no database in {settings.service.data_directory()}: give the --data-dir of "
            "`tidemark serve`, or create it with `tidemark db upgrade` or `tidemark serve`",
            retryable=False,
        )
    database = open_store(settings)
    try:
        yield database.engine
    finally:
        database.close()


@contextmanager
def open_at_head(settings: Settings) -> Iterator[Engine]:
    """Open a database whose schema is the one of this version.

    Raises:
        StoreError: there is none, it has another schema, or our role may not even read which one.
    """
    with open_existing(settings) as engine:
        running_role.read_privileges(engine)
        schema.require_head(engine)
        yield engine
