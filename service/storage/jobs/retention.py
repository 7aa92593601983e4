"""Removes what is older than an operator wants to keep, and what has served its time.

The audit trail is kept for ever. Attempts go with the notification that they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import Engine, func, select, text

from rules.errors import StoreError
from service.storage.database.translate import translated
from service.storage.tables.alerting import JOB_RUN

BATCH: Final = 5_000  # rows per statement: a long delete would make a round's transaction wait


class Kind(StrEnum):
    """What is removed; the words of logs and of a run's stats."""

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
    """Return a statement that chooses the oldest rows, in the order of the index.

    So a batch reads what it deletes and no more: without an order every batch would pass again over
    what the ones before it left dead. An array, because a join with the chosen rows may read the
    whole table.
    """
    return (
        f"{key} = ANY(ARRAY(SELECT {key} FROM {table} "  # noqa: S608 - of words in this file
        f"WHERE {timestamp} < :before AND {besides} ORDER BY {timestamp} LIMIT :batch))"
    )


def _deleted(table: str, timestamp: str, *, besides: str = "true", key: str = "id") -> str:
    """Return a statement that deletes the oldest rows.

    The time is asked for twice: a row may change between the choice and the deletion, as a finding
    that opens again, and of one that did PostgreSQL observations only at the outer condition once more.
    """
    chosen = _rows(table, timestamp, besides=besides, key=key)
    return f"DELETE FROM {table} WHERE {chosen} AND {timestamp} < :before AND {besides}"  # noqa: S608 - as above


UNHELD: Final = """NOT EXISTS (SELECT 1 FROM alert
WHERE alert.cluster = acknowledgement.cluster AND alert.fingerprint = acknowledgement.fingerprint)"""
# What is dead can still be sent again by a person, and needs its body as long as it is kept.
TOLD: Final = "state IN ('delivered', 'superseded') AND octet_length(body) > 0"
STATEMENTS: Final[Mapping[Kind, str]] = {
    Kind.TRANSITIONS: _deleted("transition", "at"),
    Kind.FINDINGS: _deleted("finding", "ended_at"),
    # Of a cluster that no service watches any more; what rounds read goes within hours (`inbox`).
    Kind.LOG_LINES: _deleted("log_inbox", "received_at"),
    Kind.ALERT_STEPS: _deleted("alert_step", "at"),
    Kind.ALERTS: _deleted("alert", "resolved_at", besides="state = 'resolved'"),
    Kind.BODIES: f"UPDATE outbox SET body = '' WHERE {_rows('outbox', 'done_at', besides=TOLD)}",  # noqa: S608 - as above
    Kind.DELIVERIES: _deleted("outbox", "done_at"),
    Kind.ACKNOWLEDGEMENTS: _deleted("acknowledgement", "at", besides=UNHELD, key="ctid"),
    Kind.CLOSINGS: _deleted("closing", "done_at"),
    Kind.SILENCES: _deleted("silence", "ends_at"),
    Kind.IDEMPOTENCY: _deleted("idempotency", "created_at", key="ctid"),
    Kind.JOB_RUNS: _deleted("job_run", "started_at", besides="outcome <> 'running'"),
}


def remove(
    engine: Engine,
    limits: Mapping[Kind, datetime],
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Remove what is older than its limit; return how many rows went, or lost their body.

    An open finding stays, however old, but its transitions go; so with alerts. Of each kind as many
    go as can, whatever becomes of the others. `is_over` is asked between batches.

    Raises:
        StoreError: the database rejected or is away; what was removed so far stays removed.
    """
    removed = dict.fromkeys((kind.value for kind in limits), 0)
    errors: list[StoreError] = []
    for kind, before in limits.items():
        told = kind.replace("_", " ")
        try:
            with translated(f"old {told} cannot be removed"):
                for count in _batches(engine, STATEMENTS[kind], before, is_over):
                    removed[kind.value] += count
        except StoreError as exc:
            errors.append(exc)
    if errors:
        raise errors[0]
    return removed


def ran_before(engine: Engine, timestamp: datetime) -> datetime | None:
    """Return when the last run of a job until a time began, None if there was none.

    Raises:
        StoreError: the database is away.
    """
    began = JOB_RUN.c.started_at
    last = select(func.max(began)).where(began <= timestamp)
    with translated("runs of jobs cannot be read"), engine.connect() as connection:
        found: datetime | None = connection.execute(last).scalar_one()
    return found


def _batches(
    engine: Engine, statement: str, before: datetime, is_over: Callable[[], bool]
) -> Iterator[int]:
    """Work batch by batch, each in a transaction of its own; yield how many rows it changed."""
    count = BATCH
    while count == BATCH and not is_over():
        with engine.begin() as connection:
            given = {"before": before, "batch": BATCH}
            count = connection.execute(text(statement), given).rowcount
        yield count
