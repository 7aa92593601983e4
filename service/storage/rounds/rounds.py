"""Stores one or more rounds in one transaction: findings, alerts, outbox and checkpoint agree.

Alerts are stored within a savepoint: if the database rejects them, the findings and the notifications are
stored all the same, and the error is returned.
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
from service.storage.database.translate import translate_errors
from service.storage.delivery.enqueuing import enqueue
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey, RoundId


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The data of one round to store."""

    cluster: ClusterKey
    round_id: RoundId
    at: datetime  # aware, UTC: the round's own time
    changes: Sequence[Change]
    checkpoint: Checkpoint | None  # None: a later round has a newer one
    alerts: AlertDelta | None = None  # None: merged into a later round, or unchanged
    transitions: int = field(init=False)  # how many changes are transitions

    @property
    def size(self) -> int:
        """Return about how many rows it writes."""
        return len(self.changes) + (0 if self.alerts is None else self.alerts.size)

    def __post_init__(self) -> None:
        """Count once: waiting rounds are scanned in every round."""
        count = sum(change.is_transition for change in self.changes)
        object.__setattr__(self, "transitions", count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Result of storing rounds."""

    # Pending requests for the last round's cluster; None: not known.
    requests: PendingRequests | None = None
    rejected: tuple[str, ...] = ()  # cluster ids whose alerts the database rejected
    error: str | None = None  # of alerts, one line


# The planner has no statistics of a table that grows in this transaction, and would compare every change
# with every finding: 3 s for 10,000 that open at once, and beyond the timeout for 20,000. And the rows of
# a large round, which are one parameter, would be spilled to disk.
FOR_MANY_ROWS: Final = text(
    "SELECT set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true)"
)


def store_rounds(engine: Engine, rounds: Sequence[Round]) -> Stored:
    """Store rounds in their order in one transaction; rounds that are already stored are skipped.

    If the answer to COMMIT is lost, storing the same rounds again is safe, whether they were stored or
    not.

    Raises:
        StoreError: nothing was stored, because another writer has the cluster or the database rejected
            the rounds or is away; or the answer to COMMIT was lost.
    """
    with translate_errors("the round cannot be stored"), engine.begin() as connection:
        connection.execute(FOR_MANY_ROWS)
        for name, writer in sorted(
            {(round_.cluster.name, round_.round_id.writer) for round_ in rounds}
        ):
            clusters.require_own(connection, name, writer)
        errors = {
            key.cluster_id: error
            for key in sorted({round_.cluster for round_ in rounds})
            if (error := _store_cluster(connection, key, [r for r in rounds if r.cluster == key]))
        }
        requests = _pending_requests(connection, rounds[-1])
        return Stored(
            requests=requests,
            rejected=tuple(errors),
            error=next(iter(errors.values()), requests.error),
        )


def _store_cluster(connection: Connection, key: ClusterKey, rounds: Sequence[Round]) -> str | None:
    """Store rounds of one cluster; return why the database rejected its alerts, None if it did not."""
    cluster = clusters.row_id(connection, key, rounds[0].at)
    last = clusters.last_round(connection, cluster)
    new = [round_ for round_ in rounds if not _is_stored(round_.round_id, last)]
    if not new:
        return None
    error: str | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="alert_rows") as beside:
        for round_ in new:
            rows = findings.rows_of(round_.changes)
            # They are encoded while the database stores the findings.
            alert_rows = (
                None if round_.alerts is None else beside.submit(alerting.rows_of, round_.alerts)
            )
            findings.save(connection, cluster, rows, round_.at)
            if round_.alerts is not None and alert_rows is not None:
                error = _save_alerts(connection, cluster, round_.alerts, alert_rows) or error
    remembered = [(round_.checkpoint, round_.at) for round_ in new if round_.checkpoint is not None]
    if remembered:
        clusters.save_checkpoint(connection, cluster, *remembered[-1])
    clusters.note_round(connection, cluster, new[-1].round_id)
    return error


def _save_alerts(
    connection: Connection, cluster: int, delta: AlertDelta, rows: Future[AlertRows]
) -> str | None:
    """Store a delta of alerting; return why the database rejected it, None if it did not.

    Notifications and outcomes of closing requests are stored all the same: alerting considers them done
    and would not repeat them.

    Raises:
        StoreError: the database is away.
    """
    error = _rejection(connection, lambda: alerting.save(connection, cluster, delta, rows.result()))
    if error is not None:
        for notification in delta.outgoing:
            _rejection(connection, partial(enqueue, connection, cluster, (notification,)))
        _rejection(connection, lambda: alerting.note_closed(connection, delta.closed))
    return error


def _rejection(connection: Connection, save: Callable[[], None]) -> str | None:
    """Store within a savepoint; return why the database rejected it, None if it did not.

    Raises:
        StoreError: the database is away.
    """
    try:
        with translate_errors("alerts cannot be stored"), connection.begin_nested():
            save()
    except StoreError as exc:
        if exc.retryable:
            raise
        return str(exc)
    except (TypeError, ValueError) as exc:  # a bug in encoding them must not lose the round
        return f"alerts cannot be written: {exc!r}"
    return None


def _pending_requests(connection: Connection, last: Round) -> PendingRequests:
    cluster = clusters.row_id(connection, last.cluster, last.at)
    return pending_requests.read(connection, cluster, last.at)


def _is_stored(round_id: RoundId, last: RoundId | None) -> bool:
    return last is not None and round_id.writer == last.writer and round_id.number <= last.number
