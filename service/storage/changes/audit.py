"""The audit trail: who changed what, and why. Rows are added in the transaction of the change, and
a trigger rejects changing or removing them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, insert, select

from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import AUDIT


class Action(StrEnum):
    """Actions of users."""

    ALERT_ACKNOWLEDGE = "alert.acknowledge"
    ALERT_UNACKNOWLEDGE = "alert.unacknowledge"
    ALERT_FEEDBACK = "alert.feedback"
    ALERT_WITHDRAW_FEEDBACK = "alert.withdraw_feedback"
    ALERT_CLOSE = "alert.close"
    SILENCE_CREATE = "silence.create"
    SILENCE_EDIT = "silence.edit"
    SILENCE_EXPIRE = "silence.expire"
    RECEIVER_TEST = "receiver.test"
    DELIVERY_REPLAY = "delivery.replay"
    JOB_RUN = "job.run"
    BASELINE_ROLLBACK = "baseline.rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """An action of a user."""

    action: Action
    target: str
    why: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A row of the trail."""

    id: int
    at: datetime
    who: str
    what: str
    target: str
    why: str
    details: Mapping[str, Any]
    cluster: str | None  # whose service was asked; None: a version before did not record it


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which rows a page shows; None takes all."""

    cluster: str | None = None
    who: str | None = None
    what: str | None = None
    target: str | None = None
    since: datetime | None = None
    before: int | None = None  # row id of the last one already shown


def note(
    connection: Connection, audit_event: AuditEvent, *, cluster: str, who: str, at: datetime
) -> None:
    """Store an audit event; `cluster` is the configured name of the one whose service was asked."""
    row = insert(AUDIT).values(
        cluster=cluster,
        at=at,
        who=who,
        what=audit_event.action.value,
        target=audit_event.target,
        why=audit_event.why,
        details=dict(audit_event.details),
    )
    connection.execute(row)


class AuditTrail:
    """The trail of all clusters of the database, for readers."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered

    def page(self, filters: AuditFilter, limit: int) -> list[AuditRow]:
        """Return rows, newest first."""
        same = [
            AUDIT.c[name] == value
            for name in ("cluster", "who", "what", "target")
            if (value := getattr(filters, name)) is not None
        ]
        query = select(AUDIT).where(*same)
        if filters.since is not None:
            query = query.where(AUDIT.c.at >= filters.since)
        if filters.before is not None:
            query = query.where(AUDIT.c.id < filters.before)
        query = query.order_by(AUDIT.c.id.desc()).limit(limit)
        with (
            translate_errors("the audit trail cannot be read"),
            self._engine().connect() as connection,
        ):
            return [AuditRow(**row) for row in connection.execute(query).mappings()]
