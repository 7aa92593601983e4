"""Publishes a nightly run: readers see the previous run until all of it is loaded.

A run is copied into a table of its own, checked against its record, attached and made the current
one in one transaction. A failure in between leaves nothing behind. Readers are not blocked: attaching
takes no lock that conflicts with reads. Dropping does, so old runs are dropped afterwards, and a run
that is still being read is dropped after a later run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, func, insert, select, table, text

from rules.baseline.baseline_run import BaselineRun
from rules.errors import StoreError
from service.runtime.clock import monotonic
from service.runtime.threads import one_ahead
from service.storage.baselines.binary_copy import SIGNATURE, TRAILER
from service.storage.baselines.current import make_current, take_turn
from service.storage.baselines.encoding import COLUMNS, RunRows
from service.storage.baselines.run_files import (
    RunPlace,
    read_errors,
    read_record,
    rejection_of,
    row_groups,
)
from service.storage.baselines.series_labels import read_labels
from service.storage.database.translate import translate_errors
from service.storage.tables.core import BASELINE_CURRENT, BASELINE_RUNS, PARTITION_PREFIX

RUNS_KEPT: Final = 3  # to roll back to
STATEMENT_TIMEOUT: Final = "30min"  # ten million series take a quarter of an hour
DROP_LOCK_TIMEOUT: Final = "2s"  # readers that come meanwhile wait behind it

_run = BASELINE_RUNS.c


class Publishing(StrEnum):
    """Outcome of publishing a run."""

    PUBLISHED = "published"  # it is loaded and the current one
    UNCHANGED = "unchanged"  # it was loaded before; which run is current stays as it is
    OLDER = "older"  # a later day is loaded already: nothing was changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Result of publishing."""

    outcome: Publishing
    run_id: str
    series: int  # rows of the run
    unlabelled: int = 0  # of them: series that the dictionary does not have
    unreadable: tuple[str, ...] = ()  # parts of the dictionary
    dropped: tuple[str, ...] = ()  # runs that are no longer kept
    still_read: tuple[str, ...] = ()  # runs that would be dropped, were they not in use
    seconds: float = 0.0


def publish(
    engine: Engine,
    place: RunPlace,
    *,
    cluster: str,
    now: datetime,
    runs_kept: int = RUNS_KEPT,
) -> Published:
    """Load a complete run and make it the current one of a cluster, by its configured name.

    Of several days computed at once only the last has to be published. Publishing a run again
    changes nothing, also after a rollback. Memory does not grow with the run: about 25 bytes for
    each series of the dictionary, and two groups of rows.

    Args:
        engine: of a database whose schema is at head.
        place: where the run is.
        cluster: its configured name.
        now: aware, UTC; kept as the time of loading.
        runs_kept: how many runs stay loaded, this one included.

    Raises:
        StoreError: files are missing or damaged (not retryable), or the database rejected the run or is away;
            the previous run stays current, and a retry starts over. Also if only old runs could not
            be dropped: its message says so, and the run is the current one.
    """
    begin = monotonic()
    run = read_record(place)
    label = f"run {run.id} of {run.day}"
    with translate_errors(f"{label} is not published"), engine.begin() as connection:
        loaded = _Loading(connection, place, run, cluster=cluster).load(now)
    with translate_errors(f"{label}: {loaded.outcome.value}, but old runs are not dropped"):
        dropped, still_read = _drop_old(engine, cluster, runs_kept)
    return replace(loaded, dropped=dropped, still_read=still_read, seconds=monotonic() - begin)


class _Loading:
    """One transaction that loads a run."""

    def __init__(
        self, connection: Connection, place: RunPlace, run: BaselineRun, *, cluster: str
    ) -> None:
        self.unlabelled = 0
        self.unreadable: tuple[str, ...] = ()
        self._connection = connection
        self._place = place
        self._record = run
        self._cluster = cluster

    def load(self, now: datetime) -> Published:
        """Load the run and make it the current one, unless it or a later one is there already."""
        return Published(
            outcome=self._load(now),
            run_id=self._record.id,
            series=self._record.series,
            unlabelled=self.unlabelled,
            unreadable=self.unreadable,
        )

    def _load(self, now: datetime) -> Publishing:
        take_turn(self._connection, self._cluster)
        outcome = self._find_outcome(now)
        if outcome is not None:
            return outcome
        row = self._connection.execute(self._row(now)).scalar_one()
        self._copy(row)
        self._attach(row)
        make_current(self._connection, self._cluster, row, now)
        return Publishing.PUBLISHED

    def _find_outcome(self, now: datetime) -> Publishing | None:
        run = self._record
        ours = _run.cluster == self._cluster
        same = select(_run.digest).where(ours, _run.run_id == run.id)
        digest = self._connection.execute(same).scalar_one_or_none()
        if digest is not None and digest != run.digest:
            raise rejection_of(self._place, "a run of this id with other content is loaded")
        if digest is not None:
            return Publishing.UNCHANGED
        # A later day, in any zone, comes from a clock that was ahead: it must not block newer runs.
        is_over = _run.day <= now.date() + timedelta(days=1)
        last = select(func.max(_run.day)).where(ours, is_over)
        newest = self._connection.execute(last).scalar_one()
        return Publishing.OLDER if newest is not None and newest > run.day else None

    def _row(self, now: datetime) -> Any:
        run = self._record
        stats = {
            "outcomes": run.outcomes,
            "damaged": {str(bucket.bucket): bucket.damaged for bucket in run.damaged},
        }
        return (
            insert(BASELINE_RUNS)
            .values(
                cluster=self._cluster,
                day=run.day,
                run_id=run.id,
                digest=run.digest,
                time_zone=run.zone,
                series=run.series,
                stats=stats,
                loaded_at=now,
            )
            .returning(_run.id)
        )

    def _copy(self, row: int) -> None:
        """Copy the rows into a new table.

        It is not created as a partition, which would lock readers out. FREEZE saves the first vacuum
        from rewriting the table. Functions of the schema make, attach and drop tables: we may not.
        """
        name = table_of(row)
        self._statement(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'")
        self._statement(f"SELECT create_baselines_partition({row}, current_user)")
        rows = RunRows(row, self._labels())
        driver = self._connection.connection.driver_connection
        if driver is None:
            raise StoreError("the connection is closed", retryable=True)
        columns = ", ".join(COLUMNS)
        statement = f"COPY {name} ({columns}) FROM STDIN (FORMAT binary, FREEZE)"
        with (
            driver.cursor() as cursor,
            cursor.copy(statement) as copy,
            closing(one_ahead(self._encode(rows))) as encoded,
        ):
            copy.write(SIGNATURE)
            for some in encoded:
                copy.write(some)
            copy.write(TRAILER)
        self.unlabelled = rows.unlabelled
        counted = select(func.count()).select_from(table(name))
        came = self._connection.execute(counted).scalar_one()
        if came != self._record.series:
            why = f"{came} rows were loaded, and its record says {self._record.series}"
            raise rejection_of(self._place, why)

    def _labels(self) -> Any:
        with read_errors(self._place, "the dictionary of series"):
            labels = read_labels(self._place.files, self._place.history)
        self.unreadable = labels.unreadable
        return labels

    def _encode(self, rows: RunRows) -> Iterator[bytes]:
        for batch in row_groups(self._place, self._record):
            try:
                yield rows.rows(batch)
            except ValueError as exc:
                raise rejection_of(self._place, str(exc)) from exc

    def _attach(self, row: int) -> None:
        """Attach the table; a constraint saves another scan of all rows.

        No statistics of arrays are collected, also by autovacuum: they would take longer than all the rest.
        """
        self._statement(f"SELECT attach_baselines_partition({row})")

    def _statement(self, statement: str) -> None:
        self._connection.execute(text(statement))


def table_of(row: int) -> str:
    """Return the name of the table that holds a run's rows."""
    return f"{PARTITION_PREFIX}{row}"


def _drop_old(
    engine: Engine, cluster: str, runs_kept: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Drop old runs, each in its own transaction; return the dropped ones, and those still in use."""
    with engine.connect() as connection:
        loaded = select(_run.id, _run.run_id).where(_run.cluster == cluster)
        newest_first = loaded.order_by(_run.day.desc(), _run.id.desc())
        in_force = _in_force(connection, cluster)
        old = [
            row for row in connection.execute(newest_first).all()[runs_kept:] if row.id != in_force
        ]
    gone = {row.run_id: _drop_run(engine, cluster, row.id) for row in old}
    return (
        tuple(name for name, is_gone in gone.items() if is_gone),
        tuple(name for name, is_gone in gone.items() if not is_gone),
    )


def _in_force(connection: Connection, cluster: str) -> int | None:
    current = select(BASELINE_CURRENT.c.run).where(BASELINE_CURRENT.c.cluster == cluster)
    row: int | None = connection.execute(current).scalar_one_or_none()
    return row


def _drop_run(engine: Engine, cluster: str, row: int) -> bool:
    """Drop a run unless it is being read or became the current one; return whether it was dropped."""
    try:
        with translate_errors("an old run cannot be dropped"), engine.begin() as connection:
            take_turn(connection, cluster)
            if _in_force(connection, cluster) == row:
                return False
            connection.execute(text(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'"))
            connection.execute(text(f"SELECT drop_baselines_partition({row})"))
            connection.execute(delete(BASELINE_RUNS).where(_run.id == row))
    except StoreError as exc:
        if not exc.retryable:
            raise
        return False
    return True
