"""Removes rows that are older than the configured retention, and rows that are no longer needed.

The audit trail is kept for ever. Attempts are removed with their notification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import Engine, func, select, text

from rules.errors import StoreError
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import JOB_RUN

BATCH: Final = 5_000  # rows per statement: a long DELETE would block the transaction of a round


class Kind(StrEnum):
    """What is removed; also the names in logs and in the stats of a run."""

    TRANSITIONS = "transitions"
    FINDINGS = "findings"
    LOG_LINES = "log_lines"
    ALERT_STEPS = "alert_steps"
    ALERTS = "alerts"
    BODIES = "bodies"
    DELIVERIES = "deliveries"
    ACKNOWLEDGEMENTS = "acknowledgements"
    CLOSINGS = "closings"
    SILENCES = "silences"
    IDEMPOTENCY = "idempotency_keys"
    JOB_RUNS = "job_runs"


def _rows(table: str, timestamp: str, *, besides: str = "true", key: str = "id") -> str:
    """Return the condition that selects the oldest rows, in the order of the index.

    A batch so reads only what it deletes: without an order every batch would scan the dead rows of those
    before it. It uses an array, because a join with the selected rows may scan the whole table.
    """
    return (
        f"{key} = ANY(ARRAY(SELECT {key} FROM {table} "  # noqa: S608 - of words in this file
        f"WHERE {timestamp} < :before AND {besides} ORDER BY {timestamp} LIMIT :batch))"
    )


def _delete_statement(table: str, timestamp: str, *, besides: str = "true", key: str = "id") -> str:
    """Return a statement that deletes the oldest rows.

    The time is checked twice: a row may change between selection and deletion, such as a finding that
    opens again, and PostgreSQL rechecks only the outer condition of such a row.
    """
    chosen = _rows(table, timestamp, besides=besides, key=key)
    return f"DELETE FROM {table} WHERE {chosen} AND {timestamp} < :before AND {besides}"  # noqa: S608 - as above


UNHELD: Final = """NOT EXISTS (SELECT 1 FROM alert
WHERE alert.cluster = acknowledgement.cluster AND alert.fingerprint = acknowledgement.fingerprint)"""
# A dead notification can still be replayed, and needs its body as long as it is stored.
SENT_BODIES: Final = "state IN ('delivered', 'superseded') AND octet_length(body) > 0"
STATEMENTS: Final[Mapping[Kind, str]] = {
    Kind.TRANSITIONS: _delete_statement("transition", "at"),
    Kind.FINDINGS: _delete_statement("finding", "ended_at"),
    # Of clusters that are no longer watched; lines that rounds have read are removed within hours (`inbox`).
    Kind.LOG_LINES: _delete_statement("log_inbox", "received_at"),
    Kind.ALERT_STEPS: _delete_statement("alert_step", "at"),
    Kind.ALERTS: _delete_statement("alert", "resolved_at", besides="state = 'resolved'"),
    Kind.BODIES: f"UPDATE outbox SET body = '' WHERE {_rows('outbox', 'done_at', besides=SENT_BODIES)}",  # noqa: S608 - as above
    Kind.DELIVERIES: _delete_statement("outbox", "done_at"),
    Kind.ACKNOWLEDGEMENTS: _delete_statement("acknowledgement", "at", besides=UNHELD, key="ctid"),
    Kind.CLOSINGS: _delete_statement("closing", "done_at"),
    Kind.SILENCES: _delete_statement("silence", "ends_at"),
    Kind.IDEMPOTENCY: _delete_statement("idempotency", "created_at", key="ctid"),
    Kind.JOB_RUNS: _delete_statement("job_run", "started_at", besides="outcome <> 'running'"),
}


def remove(
    engine: Engine,
    limits: Mapping[Kind, datetime],
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Remove what is older than its limit; return how many rows were removed, or lost their body.

    An open finding stays, however old, but its transitions are removed; likewise alerts. An error with
    one kind does not stop the others. `is_over` is checked between batches.

    Raises:
        StoreError: the database rejected a statement or is away; what was removed stays removed.
    """
    removed = dict.fromkeys((kind.value for kind in limits), 0)
    errors: list[StoreError] = []
    for kind, before in limits.items():
        what = kind.replace("_", " ")
        try:
            with translate_errors(f"old {what} cannot be removed"):
                for count in _batches(engine, STATEMENTS[kind], before, is_over):
                    removed[kind.value] += count
        except StoreError as exc:
            errors.append(exc)
    if errors:
        raise errors[0]
    return removed


def last_run_before(engine: Engine, timestamp: datetime) -> datetime | None:
    """Return when the last run of any job up to a time began, None if there was none.

    Raises:
        StoreError: the database is away.
    """
    began = JOB_RUN.c.started_at
    last = select(func.max(began)).where(began <= timestamp)
    with translate_errors("runs of jobs cannot be read"), engine.connect() as connection:
        started_at: datetime | None = connection.execute(last).scalar_one()
    return started_at


def _batches(
    engine: Engine, statement: str, before: datetime, is_over: Callable[[], bool]
) -> Iterator[int]:
    """Execute a statement in batches, each in its own transaction; yield how many rows it changed."""
    count = BATCH
    while count == BATCH and not is_over():
        with engine.begin() as connection:
            parameters = {"before": before, "batch": BATCH}
            count = connection.execute(text(statement), parameters).rowcount
        yield count
