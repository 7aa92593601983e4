"""Removes rows that are older than the configured retention, and rows that are no longer needed.

A service removes what is its own cluster's, what is shared, and what no service keeps any more; the limits of
another service are its own. The audit trail is kept for ever. Attempts are removed with their notification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Engine, func, outerjoin, select, text

from rules.errors import StoreError
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import JOB_RUN
from service.storage.tables.core import CHECKPOINT, CLUSTER

BATCH: Final = 5_000  # rows per statement: a long DELETE would block the transaction of a round
UNKEPT_AFTER: Final = timedelta(days=90)  # a cluster that no service has kept for so long


class Kind(StrEnum):
    """What is removed; also the names in logs and in the stats of a run."""

    TRANSITIONS = "transitions"
    FINDINGS = "findings"
    LOG_LINES = "log_lines"
    LOG_STREAMS = "log_streams"
    APPLICATION_ERRORS = "application_errors"
    CHANGE_EVENTS = "change_events"
    ALERT_STEPS = "alert_steps"
    ALERTS = "alerts"
    BODIES = "bodies"
    DELIVERIES = "deliveries"
    ACKNOWLEDGEMENTS = "acknowledgements"
    CLOSINGS = "closings"
    SILENCES = "silences"
    IDEMPOTENCY = "idempotency_keys"
    JOB_RUNS = "job_runs"


# Conditions on a row; what belongs to no cluster, or to one that no service keeps, is everybody's to remove.
BY_ROW_ID: Final = "(cluster = ANY(CAST(:others AS bigint[]))) IS NOT TRUE"
BY_NAME: Final = "(cluster = ANY(CAST(:other_names AS text[]))) IS NOT TRUE"
SHARED: Final = "true"
ONLY_UNKEPT: Final = f"{BY_NAME} AND cluster <> :name"


def _of(parent: str, column: str) -> str:
    """Return the condition that a row's parent is no other service's."""
    return (
        f"NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE p.id = {column} "  # noqa: S608 - of words in this file
        "AND p.cluster = ANY(CAST(:others AS bigint[])))"
    )


def _old_rows(table: str, timestamp: str, *, besides: str, key: str) -> str:
    """Return the query of a batch: old rows, each with its time and its key, from a position on.

    It follows the index of the time, and each batch begins after the one before: no statement passes over the
    rows that are gone, or over more than a batch of other services' rows.
    """
    kind, first = ("tid", "(0,0)") if key == "ctid" else ("bigint", "0")
    position = f"(CAST(:at AS timestamptz), CAST(coalesce(:key, '{first}') AS {kind}))"
    return (
        f"SELECT {key} AS key, {timestamp} AS at FROM {table} "  # noqa: S608 - of words in this file
        f"WHERE {timestamp} < :before AND ({timestamp}, {key}) > {position} AND {besides} "
        f"ORDER BY {timestamp}, {key} LIMIT :batch"
    )


def _statement(  # noqa: PLR0913 - each by its name
    table: str, timestamp: str, change: str, *, own: str, besides: str = "true", key: str = "id"
) -> str:
    """Return a statement that changes the old rows of a batch which are not another service's.

    The time is checked twice: a row may change between selection and deletion, such as a finding that
    opens again, and PostgreSQL rechecks only the outer condition of such a row. It uses an array, because a
    join with the selected rows may scan the whole table.
    """
    old = _old_rows(table, timestamp, besides=besides, key=key)
    return (
        f"WITH old AS MATERIALIZED ({old}), changed AS ({change} "  # noqa: S608 - of words in this file
        f"WHERE {key} = ANY(ARRAY(SELECT key FROM old)) AND {timestamp} < :before AND {besides} "
        f"AND {own} RETURNING 1) "
        "SELECT (SELECT count(*) FROM changed) AS changed, (SELECT count(*) FROM old) AS scanned, "
        "CAST(last.at AS text) AS at, CAST(last.key AS text) AS key "
        "FROM (SELECT at, key FROM old ORDER BY at DESC, key DESC LIMIT 1) AS last"
    )


def _delete(table: str, timestamp: str, *, own: str, besides: str = "true", key: str = "id") -> str:
    change = f"DELETE FROM {table}"  # noqa: S608 - of words in this file
    return _statement(table, timestamp, change, own=own, besides=besides, key=key)


UNHELD: Final = """NOT EXISTS (SELECT 1 FROM alert
WHERE alert.cluster = acknowledgement.cluster AND alert.fingerprint = acknowledgement.fingerprint)"""
# A dead notification can still be replayed, and needs its body as long as it is stored.
SENT_BODIES: Final = "state IN ('delivered', 'superseded') AND octet_length(body) > 0"
NO_BODY: Final = "UPDATE outbox SET body = ''"
STATEMENTS: Final[Mapping[Kind, str]] = {
    Kind.TRANSITIONS: _delete("transition", "at", own=_of("finding", "finding")),
    Kind.FINDINGS: _delete("finding", "ended_at", own=BY_ROW_ID),
    # Of clusters that are no longer watched; what rounds have read is removed within hours (`inbox`).
    Kind.LOG_LINES: _delete("log_inbox", "received_at", own=BY_NAME),
    Kind.LOG_STREAMS: _delete("log_stream", "updated_at", own=ONLY_UNKEPT, key="ctid"),
    Kind.APPLICATION_ERRORS: _delete("application_error", "last_seen", own=BY_NAME, key="ctid"),
    Kind.CHANGE_EVENTS: _delete("change_event", "seen_at", own=BY_ROW_ID),
    Kind.ALERT_STEPS: _delete("alert_step", "at", own=_of("alert", "alert")),
    Kind.ALERTS: _delete("alert", "resolved_at", own=BY_ROW_ID, besides="state = 'resolved'"),
    Kind.BODIES: _statement("outbox", "done_at", NO_BODY, own=BY_ROW_ID, besides=SENT_BODIES),
    Kind.DELIVERIES: _delete("outbox", "done_at", own=BY_ROW_ID),
    Kind.ACKNOWLEDGEMENTS: _delete(
        "acknowledgement", "at", own=BY_ROW_ID, besides=UNHELD, key="ctid"
    ),
    Kind.CLOSINGS: _delete("closing", "done_at", own=BY_ROW_ID),
    Kind.SILENCES: _delete("silence", "ends_at", own=SHARED, key="ctid"),
    Kind.IDEMPOTENCY: _delete("idempotency", "created_at", own=BY_NAME, key="ctid"),
    Kind.JOB_RUNS: _delete("job_run", "started_at", own=BY_NAME, besides="outcome <> 'running'"),
}


def remove(
    engine: Engine,
    cluster: str,
    limits: Mapping[Kind, datetime],
    now: datetime,
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Remove what is older than its limit; return how many rows were removed, or lost their body.

    An open finding stays, however old, but its transitions are removed; likewise alerts. An error with
    one kind does not stop the others. `is_over` is checked between batches.

    Args:
        engine: of a database whose schema is at head.
        cluster: the configured name of the one whose service this is.
        limits: by kind, aware, UTC.
        now: aware, UTC.
        is_over: whether to leave the rest for the next time.

    Raises:
        StoreError: the database rejected a statement or is away; what was removed stays removed.
    """
    removed = dict.fromkeys((kind.value for kind in limits), 0)
    errors: list[StoreError] = []
    others = _other_clusters(engine, cluster, now - UNKEPT_AFTER)
    for kind, before in limits.items():
        what = kind.replace("_", " ")
        try:
            with translate_errors(f"old {what} cannot be removed"):
                for count in _batches(
                    engine, STATEMENTS[kind], {**others, "before": before}, is_over
                ):
                    removed[kind.value] += count
        except StoreError as exc:
            errors.append(exc)
    if errors:
        raise errors[0]
    return removed


def last_run_before(engine: Engine, cluster: str, timestamp: datetime) -> datetime | None:
    """Return when the last run of any job of a cluster up to a time began, None if there was none.

    Raises:
        StoreError: the database is away.
    """
    began = JOB_RUN.c.started_at
    last = select(func.max(began)).where(JOB_RUN.c.cluster == cluster, began <= timestamp)
    with translate_errors("runs of jobs cannot be read"), engine.connect() as connection:
        started_at: datetime | None = connection.execute(last).scalar_one()
    return started_at


def _other_clusters(engine: Engine, cluster: str, kept_since: datetime) -> Mapping[str, Any]:
    """Return the clusters that other services have kept since a time, as the statements take them."""
    stored = outerjoin(CLUSTER, CHECKPOINT, CLUSTER.c.id == CHECKPOINT.c.cluster)
    kept = func.max(func.greatest(CLUSTER.c.claimed_at, CHECKPOINT.c.taken_at)) >= kept_since
    query = select(CLUSTER.c.name, func.array_agg(CLUSTER.c.id).label("ids")).select_from(stored)
    query = query.where(CLUSTER.c.name != cluster).group_by(CLUSTER.c.name).having(kept)
    with translate_errors("clusters cannot be read"), engine.connect() as connection:
        rows = connection.execute(query).all()
    return {
        "name": cluster,
        "others": [row_id for row in rows for row_id in row.ids],
        "other_names": [row.name for row in rows],
    }


def _batches(
    engine: Engine, statement: str, parameters: Mapping[str, Any], is_over: Callable[[], bool]
) -> Iterator[int]:
    """Execute a statement in batches, each in its own transaction; yield how many rows it changed."""
    at, key = "-infinity", None
    scanned = BATCH
    while scanned == BATCH and not is_over():
        position = {"at": at, "key": key, "batch": BATCH}
        with engine.begin() as connection:
            row = connection.execute(text(statement), {**parameters, **position}).one_or_none()
        if row is None:
            return
        at, key, scanned = row.at, row.key, row.scanned
        yield row.changed
