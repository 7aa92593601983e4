"""Runs plays of `chain.py`, and judges what a receiver recorded against what the outbox says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, text

from tests.integration.delivering.chain import Play, written
from tests.integration.notify.receiving import Got

ROOT: Final = Path(__file__).parents[3]


class Company:
    """A process that starts plays; one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, play: Play) -> int:
        """Start a play; return its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(written(play) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def end(self) -> int:
        """Wait for its end; return the exit code, negative for a signal."""
        return int(self._line())

    def kill(self, pid: int) -> None:
        """End it as a machine does that loses power."""
        os.kill(pid, signal.SIGKILL)
        assert self.end() == -signal.SIGKILL

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def company() -> Iterator[Company]:
    """Give one."""
    command = [sys.executable, "-m", "tests.integration.delivering.chain"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield Company(process)
        finally:
            process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the outbox at the end."""

    id: int
    webhook_id: str
    group_hash: str
    state: str
    body: bytes


def rows_of(engine: Engine) -> list[Row]:
    """Return all rows in order."""
    query = "SELECT id, webhook_id, group_hash, state, body FROM outbox ORDER BY id"
    with engine.connect() as connection:
        return [Row(**row) for row in connection.execute(text(query)).mappings()]


def ids_of(taken: Sequence[Got]) -> list[str]:
    """Return the webhook ids of requests in order."""
    return [one.headers["webhook-id"] for one in taken]


def alerts_in(body: bytes) -> set[tuple[str, str, str]]:
    """Return of each alert its fingerprint, its begin and whether it goes on."""
    found: Any = json.loads(body)["alerts"]
    return {(one["fingerprint"], one["startsAt"], one["status"]) for one in found}


def check(rows: Sequence[Row], taken: Sequence[Got]) -> None:
    """Judge what a receiver has taken, in order: nothing lost, nothing out of order."""
    by_id = {row.webhook_id: row for row in rows}
    assert {row.state for row in rows} <= {"delivered", "superseded"}
    ids = ids_of(taken)
    assert set(ids) == {row.webhook_id for row in rows if row.state == "delivered"}
    last: dict[str, int] = {}
    for got in taken:
        row = by_id[got.headers["webhook-id"]]
        assert row.id >= last.get(row.group_hash, 0), "out of order"
        assert got.body == row.body, "another body under the same id"
        last[row.group_hash] = row.id
    told = {alert for got in taken for alert in alerts_in(got.body)}
    ends = {alert for row in rows for alert in alerts_in(row.body) if alert[2] == "resolved"}
    assert ends <= told, "an end was lost"
    assert final(taken) == {"resolved"}


def final(taken: Sequence[Got]) -> set[str]:
    """Return how a receiver that keeps book sees all alerts in the end."""
    known = {name: status for got in taken for name, _, status in sorted(alerts_in(got.body))}
    return set(known.values())


def names_in(taken: Sequence[Got]) -> set[str]:
    """Return the fingerprints of all alerts that were told."""
    return {name for got in taken for name, _, _ in alerts_in(got.body)}
