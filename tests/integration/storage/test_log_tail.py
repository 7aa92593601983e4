"""A log that is rotated while its reader is killed again and again: every line is judged once.

`TAIL_MB` sets how much is written; `make tail-long` writes a gigabyte.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine, text

from service.runtime.clock import monotonic, wait_until
from service.storage.rounds import clusters
from tests.integration.storage.conftest import MakeDatabase
from tests.integration.storage.tail_reader import LINES
from tests.log_lines import append_failed, stamped, thrown

pytestmark = pytest.mark.integration
LOG: Final = logging.getLogger(__name__)
ROOT: Final = Path(__file__).parents[3]
MEGABYTES: Final = int(os.environ.get("TAIL_MB", "10"))
FILE_BYTES: Final = max(MEGABYTES * 1_000_000 // 60, 100_000)  # of each file before it is rotated
OBSERVATION_BYTES: Final = max(MEGABYTES * 1_000_000 // 40, 100_000)
KILLS: Final = 6 if MEGABYTES <= 100 else 40
BLOCK: Final = 100  # lines from one rejected batch to the next
SECONDS: Final = 60 + MEGABYTES  # beyond what a slow machine takes
ORDINARY: Final = (
    "[GroupCoordinator 1]: Stabilized group payments generation 42 (__consumer_offsets-13) with 6 "
    "members"
)


class Writer:
    """A broker that logs: ordinary lines, rejected batches, and rotations in the middle of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.rejected = 0
        self.rotations = 0
        self._chooser = random.Random(7)
        self._written = 0
        self._file = path.open("ab", buffering=0)

    def write(self, megabytes: int) -> None:
        """Write so much, in pieces that end anywhere in a line."""
        for _ in range(megabytes * 1_000_000 // len(self._block())):
            content = self._block()
            cut = self._chooser.randrange(len(content))
            self._file.write(content[:cut])
            self._file.write(content[cut:])
            self.lines += content.count(b"\n")
            self.rejected += 1
            self._written += len(content)
            if self._written >= FILE_BYTES:
                self._rotate()
                threading.Event().wait(0.1)  # so that it is read and killed while it is written

    def close(self) -> None:
        self._file.close()

    def _block(self) -> bytes:
        """Return ordinary lines and the two of a rejected batch, whose number comes once."""
        rejected = (
            f"Out of order sequence number for producer 2001 at offset 3 in partition orders-0: "
            f"{self.rejected + 5} (incoming seq. number), 2 (current end sequence number)"
        )
        seconds, milliseconds = divmod(self.rejected, 1000)
        at = f"2026-11-21 10:{seconds // 60 % 60:02}:{seconds % 60:02},{milliseconds:03}"
        ordinary = [stamped(ORDINARY, time=at)] * (BLOCK - 2)
        lines = [*ordinary, append_failed("orders-0", time=at), thrown(rejected)]
        return ("\n".join(lines) + "\n").encode()

    def _rotate(self) -> None:
        """Rename as log4j does, by date or by number; nothing is removed."""
        self._file.close()
        self.rotations += 1
        if self.rotations % 2:
            self.path.rename(f"{self.path}.2026-11-21-{self.rotations}")
        else:
            for number in range(self.rotations, 0, -1):
                old = Path(f"{self.path}.{number}")
                if old.exists():
                    old.rename(f"{self.path}.{number + 1}")
            self.path.rename(f"{self.path}.1")
        self._file = self.path.open("ab", buffering=0)
        self._written = 0


class Reader:
    """The process that reads, and is killed."""

    def __init__(self, database: Engine, pattern: Path) -> None:
        url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._command = [
            *(sys.executable, "-m", "tests.integration.storage.tail_reader"),
            *(url, str(pattern), str(OBSERVATION_BYTES)),
        ]
        self._process = self._started()

    def wait_for_observation(self) -> None:
        """Wait until one more observation is stored."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the reader died by itself"

    def kill(self) -> None:
        """Kill it wherever it is."""
        self._process.kill()
        self._process.communicate()

    def start_again(self) -> None:
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.fixture
def database(new_database: MakeDatabase) -> Engine:
    return new_database()


@pytest.fixture
def log(folder: Path) -> Path:
    path = Path(os.path.realpath(folder)) / "server.log"
    path.touch()
    return path


@pytest.fixture
def reader(database: Engine, log: Path) -> Iterator[Reader]:
    made = Reader(database, log)
    yield made
    made.kill()


@pytest.mark.timeout(SECONDS * 3)
def test_every_line_of_a_rotated_log_is_judged_once_whoever_kills_the_reader(
    database: Engine, log: Path, reader: Reader
) -> None:
    reader.wait_for_observation()  # what is written from now on is news
    writer, begin = Writer(log), monotonic()
    writing = threading.Thread(target=writer.write, args=(MEGABYTES,), daemon=True)
    writing.start()
    chooser = random.Random(8)
    for _ in range(KILLS):
        for _ in range(chooser.randrange(1, 4)):
            reader.wait_for_observation()
        threading.Event().wait(chooser.random() * 0.05)  # to be anywhere in the next one
        reader.kill()
        reader.start_again()
    writing.join()
    writer.close()

    assert wait_until(
        lambda: lines_read(database) >= writer.lines, timeout_seconds=SECONDS, poll_seconds=0.1
    ), f"{lines_read(database)} of {writer.lines} lines were read"
    took = monotonic() - begin
    reader.wait_for_observation()
    reader.wait_for_observation()
    assert lines_read(database) == writer.lines
    with database.connect() as connection:
        findings, transitions = (
            connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
            for table in ("finding", "transition")
        )
    assert (findings, transitions) == (writer.rejected, writer.rejected)
    LOG.info(
        "%d MB, %d lines, %d events, %d rotations, %d kills: %.0f s, restarts included",
        *(MEGABYTES, writer.lines, writer.rejected, writer.rotations, KILLS, took),
    )


def lines_read(database: Engine) -> int:
    """Return how many lines the stored rounds have read."""
    stored = clusters.load_checkpoint(database, 1)
    return 0 if stored is None else stored.unknown_since[LINES]
