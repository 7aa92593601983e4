"""Runs of jobs, each of one cluster. A running job holds an advisory lock of the database.

The lock belongs to a connection of the run's own, so that it ends with the process, however that
ends: whoever gets it knows that a run stored as running is not. If the connection is lost, the lock ends
too early; then a run may begin twice, and the outcome that is stored last holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from rules.errors import StoreError
from service.scheduling.job import Ended, Known, Rejected, RunOutcome, Stats
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
    """The runs of all processes that keep one cluster; every call may raise `StoreError`."""

    def __init__(self, engine: Callable[[], Engine], cluster: str) -> None:
        """`cluster` is its configured name."""
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._cluster = cluster

    def known(self, names: Sequence[str], now: datetime) -> Mapping[str, Known]:
        """Return the stored state of jobs; mark runs of dead processes as interrupted."""
        with translate_errors("runs of jobs cannot be read"), self._engine().begin() as connection:
            jobs = {name: _JobRows(connection, self._cluster, name) for name in names}
            return {name: rows.read_known(now) for name, rows in jobs.items()}

    def begin(self, name: str, due_at: datetime, now: datetime) -> StoredTurn | Rejected:
        """Begin a run; rejected while another process runs the job, or if one ran it for this due time."""
        with translate_errors("a run of a job cannot be begun"):
            connection = self._engine().connect()
            connection.detach()  # closing ends it with its lock; a pooled one would keep the lock
            try:
                begun = _JobRows(connection, self._cluster, name).begin(due_at, now)
            except BaseException:
                _close(connection)
                raise
        if isinstance(begun, Rejected):
            _close(connection)
            return begun
        return StoredTurn(self._engine, connection, begun)

    def missed(self, name: str, due_at: datetime, now: datetime, times: int) -> None:
        """Store how many due times of a job were missed, and the last of them."""
        with (
            translate_errors("a missed run cannot be stored"),
            self._engine().begin() as connection,
        ):
            rows = _JobRows(connection, self._cluster, name)
            rows.add(due_at, now, MISSED, ended_at=now, stats={"times": times})

    def runs(self, name: str, limit: int, before: int | None = None) -> list[StoredRun]:
        """Return runs of a job, newest first; those before a row id."""
        query = select(JOB_RUN).where(_col.cluster == self._cluster, _col.job_name == name)
        query = query.order_by(_col.id.desc())
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
        """Store the outcome of the run, without its texts if the database rejects them.

        After a `StoreError` a retry may succeed.
        """
        try:
            self._store(ended, now)
        except StoreError as exc:
            if not exc.is_of_values:
                raise
            self._store(replace(ended, detail=str(exc), stats={}), now)

    def _store(self, ended: Ended, now: datetime) -> None:
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


class _JobRows:
    """The rows of one job of one cluster, within a transaction."""

    def __init__(self, connection: Connection, cluster: str, name: str) -> None:
        self._connection = connection
        self._cluster = cluster
        self._name = name
        self._is_mine = and_(_col.cluster == cluster, _col.job_name == name)
        self._lock = func.hashtextextended(f"{cluster}\n{name}", LOCKS)

    def begin(self, due_at: datetime, now: datetime) -> int | Rejected:
        """Store a new run and return its id, or return why it is rejected; the lock lasts."""
        with self._connection.begin():
            if not self._is_true(func.pg_try_advisory_lock(self._lock)):
                return Rejected.ELSEWHERE
            self._interrupt(now)
            done = select(_col.id).where(
                self._is_mine,
                _col.due_at == due_at,
                _col.outcome.not_in([RUNNING, INTERRUPTED, MISSED]),
            )
            if self._connection.execute(done.limit(1)).first() is not None:
                return Rejected.DONE
            return self.add(due_at, now, RUNNING)

    def add(
        self,
        due_at: datetime,
        now: datetime,
        outcome: str,
        *,
        ended_at: datetime | None = None,
        stats: Stats = MappingProxyType({}),
    ) -> int:
        """Store a run, and return its row id."""
        row = insert(JOB_RUN).values(
            cluster=self._cluster,
            job_name=self._name,
            due_at=due_at,
            started_at=now,
            ended_at=ended_at,
            outcome=outcome,
            detail="",
            stats=dict(stats),
        )
        return int(self._connection.execute(row.returning(_col.id)).scalar_one())

    def read_known(self, now: datetime) -> Known:
        """Return the history of the job; what a dead process left running becomes interrupted."""
        if self._is_true(func.pg_try_advisory_xact_lock(self._lock)):
            self._interrupt(now)
        past = (self._is_mine, _col.due_at <= now)
        last = select(func.max(_col.due_at)).where(
            *past, _col.outcome.not_in([RUNNING, INTERRUPTED])
        )
        last_due = self._connection.execute(last).scalar_one()
        cut = select(func.count()).where(*past, _col.outcome == INTERRUPTED)
        if last_due is not None:
            cut = cut.where(_col.due_at > last_due)
        well = select(func.max(_col.ended_at)).where(*past, _col.outcome == SUCCEEDED)
        return Known(
            last_due=last_due,
            interrupted=int(self._connection.execute(cut).scalar_one()),
            last_success=self._connection.execute(well).scalar_one(),
        )

    def _interrupt(self, now: datetime) -> None:
        """Mark a stored run as interrupted; the lock proves that no process runs the job."""
        left = update(JOB_RUN).where(self._is_mine, _col.outcome == RUNNING)
        self._connection.execute(left.values(outcome=INTERRUPTED, ended_at=now, detail=GONE))

    def _is_true(self, function: ColumnElement[bool]) -> bool:
        return bool(self._connection.execute(select(function)).scalar_one())


def _storable(text: str) -> str:
    return text.replace("\0", "")[:MOST_DETAIL]
