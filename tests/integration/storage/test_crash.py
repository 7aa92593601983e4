"""kill -9 between rounds: the last committed round is there, whole and once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from rules.errors import StoreError
from service.storage.database.engine import Database, open_database
from service.storage.rounds import clusters
from tests.database_files import give_files
from tests.integration.storage.given import list_findings

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]


def killed_writer(directory: Path, after_rounds: int) -> int:
    """Start a writer, kill it after so many rounds; return the last number that it told."""
    command = [sys.executable, "-m", "tests.integration.storage.writer", str(give_files(directory))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        for _ in range(after_rounds):
            assert writer.stdout.readline(), "the writer died early"
        with pytest.raises(StoreError, match="in use by another Tidemark process"):
            open_database(None, directory)
        writer.kill()
        rest = writer.stdout.read().split()
    return int(rest[-1]) if rest else after_rounds


def check_last_round(database: Database, told: int) -> None:
    checkpoint = clusters.load_checkpoint(database.engine, 1)
    assert checkpoint is not None
    number = checkpoint.unknown_since["some_rule"]
    assert number in (told, told + 1), "one more may have been committed and not told"
    stored = list_findings(database.engine, 1, only_open=True)
    assert [one.labels["topic"] for one in stored] == [f"topic-{n + 1}" for n in range(number)]
    with database.engine.connect() as connection:
        doubled = connection.execute(text("SELECT count(*) FROM transition")).scalar_one()
    assert doubled == number


def test_a_killed_process_leaves_its_last_round(folder: Path) -> None:
    told = killed_writer(folder / "data", 20)
    database = open_database(None, folder / "data")
    try:
        check_last_round(database, told)
    finally:
        database.close()


def test_a_process_id_that_is_another_programs_now_is_left_alone(folder: Path) -> None:
    open_database(None, give_files(folder)).close()
    pid_file = folder / "postgres/postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{folder}/postgres\n", encoding="ascii")
    open_database(None, folder).close()
    assert not pid_file.exists()


def test_a_killed_process_and_a_killed_server_leave_its_last_round(folder: Path) -> None:
    told = killed_writer(folder / "data", 5)
    pid = (folder / "data/postgres/postmaster.pid").read_text(encoding="ascii").splitlines()[0]
    os.kill(int(pid), signal.SIGKILL)
    database = open_database(None, folder / "data")
    try:
        check_last_round(database, told)
    finally:
        database.close()
    assert not (folder / "data/postgres/postmaster.pid").exists(), "the server was stopped cleanly"
