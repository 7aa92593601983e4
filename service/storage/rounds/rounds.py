"""Stores one or more rounds in one transaction: findings, alerts, outbox and checkpoint agree.

A row that the database rejects for good is left out and reported, and all others are stored. If it rejects
alerts for another reason, the findings and the notifications are stored all the same, and the error is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Engine, text

from rules.errors import StoreError
from rules.facts.change_events import ChangeEvent
from rules.open_findings import Change
from service.alerting.alerts.delta import AlertDelta
from service.storage.alerting import alerts as alerting
from service.storage.alerting import pending_requests
from service.storage.alerting.alert_rows import AlertRows, rows_of
from service.storage.alerting.pending_requests import PendingRequests, StoredRequests
from service.storage.database.rejections import RejectedRow
from service.storage.database.translate import translate_errors
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds import change_events, clusters
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
    change_events: Sequence[ChangeEvent] = ()  # also of earlier rounds that were not stored
    is_piece: bool = False  # of a larger round: if it is tried again, then as it is
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
    # Left out: the database rejects them for good.
    rejected_rows: tuple[RejectedRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """Result of saving the rounds of one cluster."""

    rows: Sequence[RejectedRow] = ()
    error: str | None = None  # why the database rejected its alerts


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
        saved = {
            key.cluster_id: _store_cluster(connection, key, [r for r in rounds if r.cluster == key])
            for key in sorted({round_.cluster for round_ in rounds})
        }
        stored_requests = _pending_requests(connection, rounds[-1])
    requests = stored_requests.parse()  # a new pattern takes its time: no lock waits for it
    errors = {cluster_id: one.error for cluster_id, one in saved.items() if one.error}
    return Stored(
        requests=requests,
        rejected=tuple(errors),
        error=next(iter(errors.values()), requests.error),
        rejected_rows=tuple(row for one in saved.values() for row in one.rows),
    )


def _store_cluster(connection: Connection, key: ClusterKey, rounds: Sequence[Round]) -> _Saved:
    """Store rounds of one cluster."""
    cluster = clusters.row_id(connection, key, rounds[0].at)
    last = clusters.last_round(connection, cluster)
    new = [round_ for round_ in rounds if not _is_stored(round_.round_id, last)]
    if not new:
        return _Saved()
    rejected: list[RejectedRow] = []
    error: str | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="alert_rows") as beside:
        for round_ in new:
            # They are encoded while the database stores the findings.
            rows = None if round_.alerts is None else beside.submit(rows_of, round_.alerts)
            rejected += findings.save(connection, cluster, round_.changes, round_.at)
            change_events.save(connection, cluster, round_.change_events)
            if round_.alerts is not None and rows is not None:
                saved = _save_alerts(connection, cluster, round_.alerts, rows)
                rejected += saved.rows
                error = saved.error or error
    remembered = [(round_.checkpoint, round_.at) for round_ in new if round_.checkpoint is not None]
    if remembered:
        clusters.save_checkpoint(connection, cluster, *remembered[-1])
    clusters.note_round(connection, cluster, new[-1].round_id)
    return _Saved(rows=rejected, error=error)


def _save_alerts(
    connection: Connection, cluster: int, delta: AlertDelta, rows: Future[AlertRows]
) -> _Saved:
    """Store a delta of alerting; if the database rejects all of it, what alerting would not repeat.

    Raises:
        StoreError: the database is away.
    """
    try:
        with translate_errors("alerts cannot be stored"), connection.begin_nested():
            rejected = alerting.save(connection, cluster, delta, _encoded(rows))
    except StoreError as exc:
        if exc.retryable:
            raise
        return _Saved(rows=alerting.save_sent(connection, cluster, delta), error=str(exc))
    return _Saved(rows=rejected)


def _encoded(rows: Future[AlertRows]) -> AlertRows | None:
    """Return rows; None if one of them cannot be encoded, which is found when they are encoded one by one."""
    try:
        return rows.result()
    except (TypeError, ValueError):
        return None


def _pending_requests(connection: Connection, last: Round) -> StoredRequests:
    cluster = clusters.row_id(connection, last.cluster, last.at)
    return pending_requests.read(connection, cluster, last.at)


def _is_stored(round_id: RoundId, last: RoundId | None) -> bool:
    return last is not None and round_id.writer == last.writer and round_id.number <= last.number
