"""Runs of jobs. A running job holds an advisory lock of the database.

The lock belongs to a connection of the run's own, so that it ends with the process, however that
ends: whoever gets it knows that a run stored as running is not. If the connection is lost, the lock ends
too early; then a run may begin twice, and the outcome that is stored last holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from service.scheduling.job import Ended, Known, Rejected, RunOutcome
from service.storage.database.translate import translate_errors
from service.storage.formats.values import read
from service.storage.tables.alerting import JOB_RUN

LOCKS: Final = 0x6A6F_6273  # "jobs": one run of a job at a time
GONE: Final = "the process that ran it is gone"
MOST_DETAIL: Final = 10_000  # characters

# Words, not members: the driver writes a member of an enumeration by its name.
RUNNING: Final = RunOutcome.RUNNING.value
INTERRUPTED: Final = RunOutcome.INTERRUPTED.value
SUCCEEDED: Final = RunOutcome.SUCCEEDED.value
MISSED: Final = RunOutcome.MISSED.value

_col = JOB_RUN.c


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run, or due times that were missed."""

    id: int
    job_name: str
    due_at: datetime  # aware, UTC
    started_at: datetime
    ended_at: datetime | None
    outcome: RunOutcome
    detail: str
    stats: Mapping[str, int | str]


class StoredRuns:
    """All runs of all processes that share a database; every call may raise `StoreError`."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered

    def known(self, names: Sequence[str], now: datetime) -> Mapping[str, Known]:
        """Return the stored state of jobs; mark runs of dead processes as interrupted."""
        with translate_errors("runs of jobs cannot be read"), self._engine().begin() as connection:
            return {name: _read_known(connection, name, now) for name in names}

    def begin(self, name: str, due_at: datetime, now: datetime) -> StoredTurn | Rejected:
        """Begin a run; rejected while another process runs the job, or if one ran it for this due time."""
        with translate_errors("a run of a job cannot be begun"):
            connection = self._engine().connect()
            connection.detach()  # closing ends it with its lock; a pooled one would keep the lock
            try:
                begun = _begin_run(connection, name, due_at, now)
            except BaseException:
                _close(connection)
                raise
        if isinstance(begun, Rejected):
            _close(connection)
            return begun
        return StoredTurn(self._engine, connection, begun)

    def missed(self, name: str, due_at: datetime, now: datetime, times: int) -> None:
        """Store how many due times of a job were missed, and the last of them."""
        row = _row(name, due_at, now, MISSED)
        with (
            translate_errors("a missed run cannot be stored"),
            self._engine().begin() as connection,
        ):
            connection.execute(insert(JOB_RUN).values(**row, ended_at=now, stats={"times": times}))

    def runs(self, name: str, limit: int, before: int | None = None) -> list[StoredRun]:
        """Return runs of a job, newest first; those before a row id."""
        query = select(JOB_RUN).where(_col.job_name == name).order_by(_col.id.desc())
        if before is not None:
            query = query.where(_col.id < before)
        with (
            translate_errors("runs of jobs cannot be read"),
            self._engine().connect() as connection,
        ):
            rows = connection.execute(query.limit(limit)).mappings()
            return [read(StoredRun, row) for row in rows]


class StoredTurn:
    """A run under way."""

    def __init__(self, engine: Callable[[], Engine], lock: Connection, run: int) -> None:
        self._engine = engine
        self._lock = lock
        self._run = run

    def end(self, ended: Ended, now: datetime) -> None:
        """Store the outcome of the run; after a `StoreError` a retry may succeed."""
        statement = update(JOB_RUN).where(_col.id == self._run)
        with (
            translate_errors("the end of a run cannot be stored"),
            self._engine().begin() as connection,
        ):
            connection.execute(
                statement.values(
                    outcome=ended.outcome.value,
                    ended_at=now,
                    detail=_storable(ended.detail),
                    stats=dict(ended.stats),
                )
            )

    def release(self) -> None:
        """Release the lock of the job; a lost connection has done so already."""
        _close(self._lock)


def _close(connection: Connection) -> None:
    """Unlock and close a connection: the server may notice a closed connection late."""
    try:
        with connection.begin():
            connection.execute(select(func.pg_advisory_unlock_all()))
        connection.close()
    except DBAPIError:
        connection.invalidate()
        connection.close()


def _begin_run(
    connection: Connection, name: str, due_at: datetime, now: datetime
) -> int | Rejected:
    """Store a new run and return its id, or return why it is rejected."""
    with connection.begin():
        lock = func.pg_try_advisory_lock(LOCKS, func.hashtext(name))
        if not connection.execute(select(lock)).scalar_one():
            return Rejected.ELSEWHERE
        _interrupt(connection, name, now)
        done = select(_col.id).where(
            _col.job_name == name,
            _col.due_at == due_at,
            _col.outcome.not_in([RUNNING, INTERRUPTED, MISSED]),
        )
        if connection.execute(done.limit(1)).first() is not None:
            return Rejected.DONE
        row = _row(name, due_at, now, RUNNING)
        begun = insert(JOB_RUN).values(**row, stats={}).returning(_col.id)
        return int(connection.execute(begun).scalar_one())


def _read_known(connection: Connection, name: str, now: datetime) -> Known:
    lock = func.pg_try_advisory_xact_lock(LOCKS, func.hashtext(name))
    if connection.execute(select(lock)).scalar_one():
        _interrupt(connection, name, now)
    mine = (_col.job_name == name, _col.due_at <= now)
    last = select(func.max(_col.due_at)).where(*mine, _col.outcome.not_in([RUNNING, INTERRUPTED]))
    last_due = connection.execute(last).scalar_one()
    cut = select(func.count()).where(*mine, _col.outcome == INTERRUPTED)
    if last_due is not None:
        cut = cut.where(_col.due_at > last_due)
    well = select(func.max(_col.ended_at)).where(*mine, _col.outcome == SUCCEEDED)
    return Known(
        last_due=last_due,
        interrupted=int(connection.execute(cut).scalar_one()),
        last_success=connection.execute(well).scalar_one(),
    )


def _interrupt(connection: Connection, name: str, now: datetime) -> None:
    """Mark a stored run as interrupted; the lock proves that no process runs the job."""
    left = update(JOB_RUN).where(_col.job_name == name, _col.outcome == RUNNING)
    connection.execute(left.values(outcome=INTERRUPTED, ended_at=now, detail=GONE))


def _row(name: str, due_at: datetime, now: datetime, outcome: str) -> dict[str, Any]:
    return {
        "job_name": name,
        "due_at": due_at,
        "started_at": now,
        "outcome": outcome,
        "detail": "",
    }


def _storable(text: str) -> str:
    return text.replace("\0", "")[:MOST_DETAIL]
