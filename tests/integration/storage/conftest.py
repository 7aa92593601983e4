"""One embedded server for the run, one migrated template, and a copy of it for every test.

The repository suite runs once more on Debian's PostgreSQL 15, the oldest that we promise.
"""

from __future__ import annotations

import gzip
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, text

from service.storage.database import schema
from service.storage.database.engine import make_engine
from service.storage.database.server import EmbeddedServer
from tests.conftest import mending
from tests.database_files import give_files
from tests.folders import new_folder

DEBIAN: Final = Path("/usr/lib/postgresql")  # one folder per major version
TEMPLATE: Final = "migrated"
NUMBERS: Final = itertools.count()
FORMER: Final = Path(__file__).parents[2] / "fixtures/former_names/database.sql.gz"

MakeDatabase = Callable[..., Engine]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    shutil.rmtree(made)


def _served(config: pytest.Config, binaries: Path | None) -> Iterator[EmbeddedServer]:
    folder = new_folder()
    server = EmbeddedServer.start(folder if binaries else give_files(folder), binaries)
    try:
        # Nothing here is about what a machine's crash leaves, and each database that goes is a checkpoint.
        _statement(server, "ALTER SYSTEM SET fsync = off")
        _statement(server, "SELECT pg_reload_conf()")
        _statement(server, f"CREATE DATABASE {TEMPLATE}")
        engine = make_engine(server.url.set(database=TEMPLATE))
        schema.upgrade(engine)
        engine.dispose()
        with mending(config, server.ensure_running):
            yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def embedded(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    yield from _served(pytestconfig, None)


def debian_binaries() -> Path:
    """Return the programs of the newest PostgreSQL that Debian's packages installed."""
    installed = sorted(DEBIAN.glob("*/bin/pg_ctl"), key=lambda found: int(found.parts[-3]))
    assert installed, "PostgreSQL of the system is missing: apt-get install postgresql"
    return installed[-1].parent


@pytest.fixture(scope="session")
def debian(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    yield from _served(pytestconfig, debian_binaries())


@pytest.fixture
def new_database(embedded: EmbeddedServer) -> Iterator[MakeDatabase]:
    """Make databases on the embedded server: migrated ones, or empty ones."""
    yield from _databases(embedded)


@pytest.fixture(params=["embedded", "debian"])
def database(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Give a migrated database of its own, on either server."""
    server: EmbeddedServer = request.getfixturevalue(request.param)
    for make in _databases(server):
        yield make()


def _databases(server: EmbeddedServer) -> Iterator[MakeDatabase]:
    made: list[Engine] = []

    def make(*, template: str = TEMPLATE) -> Engine:
        name = f"test_{next(NUMBERS)}"
        _statement(server, f"CREATE DATABASE {name} TEMPLATE {template}")
        made.append(make_engine(server.url.set(database=name)))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()
        _statement(server, f"DROP DATABASE {engine.url.database} WITH (FORCE)")


def _statement(server: EmbeddedServer, statement: str) -> None:
    engine = make_engine(server.url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(scope="module")
def former(embedded: EmbeddedServer) -> Iterator[Engine]:
    """Give the database of the former version, brought up to the present schema."""
    content = gzip.decompress(FORMER.read_bytes()).decode()
    for make in _databases(embedded):
        engine = make(template="template0")
        connection = engine.raw_connection()
        connection.cursor().execute(content)
        connection.commit()
        connection.invalidate()  # a dump sets the search path of its session
        schema.upgrade(engine)
        yield engine
