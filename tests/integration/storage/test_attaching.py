"""Beside a service: use its server and leave it running; mend one's own server when it died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from service.runtime.clock import wait_until
from service.storage.database import engine as engine_module
from service.storage.database.engine import Database, open_database
from service.storage.database.server import DirectoryInUseError, EmbeddedServer, running_url
from tests.database_files import give_files

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]


def answer(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT 42")).scalar_one())


def postmaster(directory: Path) -> int:
    return int((directory / "postgres/postmaster.pid").read_text("ascii").split("\n")[0])


def started_at(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT pg_postmaster_start_time()")).scalar_one())


@pytest.fixture
def owner(folder: Path) -> Iterator[Database]:
    """Give the database of a service; its directory is too long for a socket."""
    database = open_database(None, give_files(folder / ("long" * 25)))
    yield database
    database.close()


def directory_of(database: Database) -> Path:
    assert database.server is not None
    return database.server.directory


@contextmanager
def killed(database: Database) -> Iterator[None]:
    """Kill the server that this test started, and wait until it is dead."""
    pid = postmaster(directory_of(database))
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pid), timeout_seconds=180)
    yield


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_second_one_attaches_and_leaves_the_server_running(owner: Database) -> None:
    directory, begin = directory_of(owner), started_at(owner.engine)
    attached = open_database(None, directory, attach=True)
    assert attached.server is None
    assert started_at(attached.engine) == begin
    assert not attached.mend(), "it is not ours to mend"
    attached.close()
    assert started_at(owner.engine) == begin


def test_without_another_process_it_owns_the_server(folder: Path) -> None:
    database = open_database(None, give_files(folder), attach=True)
    assert answer(database.engine) == 42
    database.close()
    assert running_url(folder) is None
    open_database(None, folder).close()


def test_one_process_attaches_to_another(folder: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.storage.writer", str(give_files(folder))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline(), "the writer died early"
        attached = open_database(None, folder, attach=True)
        assert attached.server is None
        assert answer(attached.engine) == 42
        attached.close()
        assert writer.stdout.readline(), "it stores on"
        writer.kill()
    open_database(None, folder).close()


def test_who_waits_gets_a_directory_that_becomes_free(
    owner: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is just ending: neither its server nor its lock can be had briefly."""
    directory, observations = directory_of(owner), []

    def no_server_yet(at: Path) -> None:
        observations.append(at)
        owner.close()

    monkeypatch.setattr(engine_module, "running_url", no_server_yet)
    database = open_database(None, directory, attach=True)
    assert observations == [directory]
    assert database.server is not None
    database.close()


def test_a_service_waits_for_a_command_that_holds_its_directory(owner: Database) -> None:
    directory = directory_of(owner)
    ending = threading.Timer(1, owner.close)
    ending.start()
    database = open_database(None, directory, wait_seconds=20)
    ending.join()
    assert database.server is not None
    assert answer(database.engine) == 42
    database.close()


def test_a_service_waits_no_longer_than_it_may(owner: Database) -> None:
    with pytest.raises(DirectoryInUseError, match="in use by another Tidemark process"):
        open_database(None, directory_of(owner), wait_seconds=0.3)
    assert answer(owner.engine) == 42


def test_a_holder_without_a_server_is_told(
    owner: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert owner.server is not None
    owner.server.pause()
    monkeypatch.setattr(engine_module, "ATTACH_SECONDS", 0.2)
    with pytest.raises(StoreError, match="whose PostgreSQL does not answer") as caught:
        open_database(None, directory_of(owner), attach=True)
    assert caught.value.retryable


def test_a_holder_whose_server_was_killed_is_told(owner: Database) -> None:
    with killed(owner), pytest.raises(StoreError, match="cannot be reached") as caught:
        open_database(None, directory_of(owner), attach=True)
    assert caught.value.retryable


def test_a_killed_server_is_started_again(owner: Database) -> None:
    with owner.engine.begin() as connection:
        connection.execute(text("CREATE TABLE kept AS SELECT 7 AS answer"))
    with killed(owner):
        assert owner.mend()
    with owner.engine.connect() as connection:
        assert connection.execute(text("SELECT answer FROM kept")).scalar_one() == 7
    assert not owner.mend(), "it runs"


def test_a_server_that_runs_is_left_alone(owner: Database) -> None:
    begin = started_at(owner.engine)
    assert not owner.mend()
    assert started_at(owner.engine) == begin


def test_after_the_end_nothing_is_started(folder: Path) -> None:
    database = open_database(None, give_files(folder))
    database.close()
    assert not database.mend()
    assert running_url(folder) is None


def test_a_server_that_cannot_be_mended_says_why(folder: Path) -> None:
    server = EmbeddedServer.start(give_files(folder))
    server.pause()
    (folder / "postgres/PG_VERSION").rename(folder / "postgres/PG_VERSION.gone")
    with pytest.raises(StoreError, match="no such file or directory"):
        server.ensure_running()
    (folder / "postgres/PG_VERSION.gone").rename(folder / "postgres/PG_VERSION")
    assert server.ensure_running()
    server.stop()


def test_a_database_by_url_is_not_ours_to_mend(embedded: EmbeddedServer, folder: Path) -> None:
    database = open_database(embedded.url.render_as_string(hide_password=False), folder)
    assert not database.mend()
    database.close()
