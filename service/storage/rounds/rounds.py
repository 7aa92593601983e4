"""One round, or all that wait, in one transaction: findings, alerts, outbox and checkpoint agree.

Alerts stand behind a savepoint: if the database will not have what alerting left, the findings are
stored all the same, with what is to be sent, and who asked is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from rules.open_findings import Change
from service.alerting.alerts.delta import AlertDelta
from service.storage.alerting import alerts as alerting
from service.storage.alerting import pending_requests
from service.storage.alerting.alerts import AlertRows
from service.storage.alerting.pending_requests import PendingRequests
from service.storage.database.translate import translated
from service.storage.delivery.enqueuing import enqueue
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds import checkpoints, clusters
from service.storage.rounds.clusters import ClusterKey, RoundId


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round has to store."""

    cluster: ClusterKey
    round_id: RoundId
    at: datetime  # aware, UTC: the round's own time
    changes: Sequence[Change]
    checkpoint: Checkpoint | None  # None: a later round's will do
    alerts: AlertDelta | None = None  # None: a later round has it, or there is nothing of it
    transitions: int = field(init=False)  # how many changes somebody may have to be told

    def __post_init__(self) -> None:
        """Count once: what waits is scanned in every round."""
        count = sum(change.is_transition for change in self.changes)
        object.__setattr__(self, "transitions", count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What came of storing rounds."""

    requests: PendingRequests | None = (
        None  # what persons want of the last round's cluster; None: not known
    )
    rejected: tuple[str, ...] = ()  # cluster ids whose alerts the database would not have
    error: str | None = None  # of alerts, one line


# The planner knows nothing of a table that grows in this very transaction, and would compare every
# change with every finding: 3 s for 10,000 that open at once, and beyond the time limit for 20,000.
# And the rows of a large round, which are one parameter, would be written to a file to be taken apart.
FOR_MANY_ROWS: Final = text(
    "SELECT set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true)"
)


def store_rounds(engine: Engine, rounds: Sequence[Round]) -> Stored:
    """Store rounds in their order in one transaction; those that are stored already are skipped.

    A connection may break while the answer to COMMIT is under way. Storing the same rounds again
    is then right, whether they arrived or not.

    Raises:
        StoreError: nothing was stored, because another writer keeps the cluster or the database
            rejected or is away; or the answer to COMMIT was lost.
    """
    with translated("the round cannot be stored"), engine.begin() as connection:
        connection.execute(FOR_MANY_ROWS)
        for name, writer in sorted({(one.cluster.name, one.round_id.writer) for one in rounds}):
            clusters.require_own(connection, name, writer)
        errors = {
            key.cluster_id: error
            for key in sorted({one.cluster for one in rounds})
            if (error := _store_cluster(connection, key, [r for r in rounds if r.cluster == key]))
        }
        wanted = _wanted(connection, rounds[-1])
        return Stored(
            requests=wanted,
            rejected=tuple(errors),
            error=next(iter(errors.values()), wanted.error),
        )


def _store_cluster(connection: Connection, key: ClusterKey, rounds: Sequence[Round]) -> str | None:
    """Store rounds of one cluster; return why the database would not have its alerts, if so."""
    cluster = clusters.row_id(connection, key, rounds[0].at)
    last = clusters.last_round(connection, cluster)
    new = [one for one in rounds if not _is_stored(one.round_id, last)]
    if not new:
        return None
    error: str | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="alert_rows") as beside:
        for one in new:
            rows = findings.rows_of(one.changes)
            # They are made while the database is busy with the findings.
            made = None if one.alerts is None else beside.submit(alerting.rows_of, one.alerts)
            findings.save(connection, cluster, rows, one.at)
            if one.alerts is not None and made is not None:
                error = _save_alerts(connection, cluster, one.alerts, made) or error
    remembered = [(one.checkpoint, one.at) for one in new if one.checkpoint is not None]
    if remembered:
        checkpoints.save(connection, cluster, *remembered[-1])
    clusters.note_round(connection, cluster, new[-1].round_id)
    return error


def _save_alerts(
    connection: Connection, cluster: int, delta: AlertDelta, rows: Future[AlertRows]
) -> str | None:
    """Store what alerting left; return why the database would not have it.

    What is to be sent, and what became of persons' wishes, is stored all the same: alerting takes it
    for done, and nobody would hear of it again.

    Raises:
        StoreError: the database is away.
    """
    error = _rejection(connection, lambda: alerting.save(connection, cluster, delta, rows.result()))
    if error is not None:
        for one in delta.outgoing:
            _rejection(connection, partial(enqueue, connection, cluster, (one,)))
        _rejection(connection, lambda: alerting.note_closed(connection, delta.closed))
    return error


def _rejection(connection: Connection, save: Callable[[], None]) -> str | None:
    """Store something or nothing of it; return why the database would not have it.

    Raises:
        StoreError: the database is away.
    """
    try:
        with translated("alerts cannot be stored"), connection.begin_nested():
            save()
    except StoreError as exc:
        if exc.retryable:
            raise
        return str(exc)
    except (TypeError, ValueError) as exc:  # a defect of ours in writing them: no round dies of it
        return f"alerts cannot be written: {exc!r}"
    return None


def _wanted(connection: Connection, last: Round) -> PendingRequests:
    cluster = clusters.row_id(connection, last.cluster, last.at)
    return pending_requests.read(connection, cluster, last.at)


def _is_stored(asked: RoundId, last: RoundId | None) -> bool:
    return last is not None and asked.writer == last.writer and asked.number <= last.number
