"""A delta of alerting as rows: encoded as lines, and stored so that a rejected row costs no other one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from sqlalchemy import Connection, TextClause, text

from service.alerting.alerts.alert import Alert
from service.alerting.alerts.codec import encode_alert, encode_group, encode_timestamp
from service.alerting.alerts.delta import AlertDelta, Closing, HistoryStep
from service.alerting.alerts.grouping import Group
from service.alerting.alerts.outbox_row import Outgoing, group_hash
from service.storage.database.bulk import json_value, lines_of, plain, rows_from
from service.storage.database.rejections import RejectedRow, RowKind, save_each
from service.storage.delivery.enqueuing import post

T = TypeVar("T")

_WHAT: Final[Mapping[RowKind, str]] = {
    RowKind.ALERT: "an alert",
    RowKind.ALERT_STEP: "a transition of an alert",
    RowKind.ALERT_GROUP: "a group of alerts",
    RowKind.NOTIFICATION: "a notification",
    RowKind.CLOSING: "the outcome of a closing",
}
_ALERT: Final = {
    "rule_id": "text",
    "labels": "jsonb",
    "fingerprint": "text",
    "severity": "text",
    "state": "text",
    "reason": "text",
    "content": "jsonb",
    "active_at": "timestamptz",
    "fired_at": "timestamptz",
    "resolved_at": "timestamptz",
    "end_reason": "text",
}
_CHANGES: Final = [name for name in _ALERT if name not in ("rule_id", "labels", "fingerprint")]
_UPSERT: Final = text(
    f"INSERT INTO alert (cluster, updated_at, {', '.join(_ALERT)}) "  # noqa: S608 - our own names
    f"SELECT :cluster, :at, {', '.join(_ALERT)} FROM {rows_from('rows', _ALERT)} "
    "ON CONFLICT (cluster, fingerprint) DO UPDATE SET updated_at = excluded.updated_at, "
    + ", ".join(f"{name} = excluded.{name}" for name in _CHANGES)
)
_STEP: Final = {
    "fingerprint": "text",
    "at": "timestamptz",
    "step": "text",
    "reason": "text",
    "evidence": "jsonb",
}
_STEPS: Final = text(
    "INSERT INTO alert_step (alert, at, step, reason, evidence) "  # noqa: S608 - our own names
    f"SELECT a.id, r.at, r.step, r.reason, r.evidence FROM {rows_from('rows', _STEP)} "
    "JOIN alert AS a ON a.cluster = :cluster AND a.fingerprint = r.fingerprint ORDER BY r.place"
)
_GROUP: Final = {
    "receiver": "text",
    "key_hash": "text",
    "content": "jsonb",
    "flush_at": "timestamptz",
}
_GROUPS: Final = text(
    "INSERT INTO alert_group (cluster, receiver, key_hash, content, flush_at) "  # noqa: S608 - same
    "SELECT :cluster, r.receiver, r.key_hash, r.content, r.flush_at "
    f"FROM {rows_from('rows', _GROUP)} ON CONFLICT (cluster, receiver, key_hash) "
    "DO UPDATE SET content = excluded.content, flush_at = excluded.flush_at"
)
_KEY: Final = {"receiver": "text", "key_hash": "text"}
_GROUPS_GONE: Final = text(
    f"DELETE FROM alert_group AS g USING {rows_from('rows', _KEY)} "  # noqa: S608 - same
    "WHERE g.cluster = :cluster AND g.receiver = r.receiver AND g.key_hash = r.key_hash"
)
_CLOSED: Final = text(
    "UPDATE closing SET done_at = :at, outcome = :outcome WHERE id = :id AND done_at IS NULL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRows:
    """A delta as lines for the database; empty for no rows."""

    alerts: str
    steps: str
    groups: str


def rows_of(delta: AlertDelta) -> AlertRows:
    """Return a delta as lines; it takes a while and needs no database."""
    contents = _Contents()
    left = [group for group in delta.groups.values() if group is not None]
    return AlertRows(
        alerts=lines_of(_alert_row(alert, contents) for alert in delta.alerts.values()),
        steps=lines_of(map(_step_row, delta.steps)),
        groups=lines_of(_group_row(group, contents) for group in left),
    )


class RowWriter:
    """Stores the rows of a delta; each method returns those that the database rejects for good.

    `lines` are all rows of a kind encoded, if they were before; parts of them are encoded anew.
    """

    def __init__(self, connection: Connection, cluster: int, at: datetime) -> None:
        self._connection = connection
        self._cluster = cluster
        self._at = at
        self._contents = _Contents()

    def alerts(self, alerts: Sequence[Alert], lines: str | None) -> list[RejectedRow]:
        """Store alerts."""

        def row(alert: Alert) -> Sequence[str | None]:
            return _alert_row(alert, self._contents)

        save_part = self._saving(_UPSERT, row, alerts, lines)
        return self._each(RowKind.ALERT, alerts, save_part, _name_of_alert)

    def steps(self, steps: Sequence[HistoryStep], lines: str | None) -> list[RejectedRow]:
        """Store steps of alerts that are stored."""
        save_part = self._saving(_STEPS, _step_row, steps, lines)
        return self._each(
            RowKind.ALERT_STEP, steps, save_part, lambda step: f"{step.step} of {step.fingerprint}"
        )

    def groups(self, delta: AlertDelta, lines: str | None) -> list[RejectedRow]:
        """Store groups, and remove those that are over."""

        def row(group: Group) -> Sequence[str | None]:
            return _group_row(group, self._contents)

        gone = _lines_of_gone(delta)
        if gone:
            self._execute(_GROUPS_GONE, gone)
        groups = [group for group in delta.groups.values() if group is not None]
        save_part = self._saving(_GROUPS, row, groups, lines)
        return self._each(RowKind.ALERT_GROUP, groups, save_part, lambda group: group.key)

    def outgoing(self, outgoing: Sequence[Outgoing]) -> list[RejectedRow]:
        """Put notifications into the outbox."""
        return self._each(
            RowKind.NOTIFICATION,
            outgoing,
            lambda part: post(self._connection, part, self._cluster, self._at),
            lambda row: f"{row.webhook_id} to {row.receiver}",
        )

    def closed(self, closed: Sequence[Closing]) -> list[RejectedRow]:
        """Store the outcomes of requests to close."""
        return self._each(
            RowKind.CLOSING,
            closed,
            lambda part: note_closed(self._connection, part),
            lambda closing: f"{closing.rule_id} {closing.closing_id}",
        )

    def _each(
        self,
        kind: RowKind,
        rows: Sequence[T],
        save_part: Callable[[Sequence[T]], object],
        name_of: Callable[[T], str],
    ) -> list[RejectedRow]:
        doing = f"{_WHAT[kind]} cannot be stored"
        rejections = save_each(self._connection, rows, save_part, doing)
        return [rejection.report(kind, name_of(rejection.row)) for rejection in rejections]

    def _saving(
        self,
        statement: TextClause,
        row: Callable[[T], Sequence[str | None]],
        rows: Sequence[T],
        lines: str | None,
    ) -> Callable[[Sequence[T]], None]:
        """Return a function that stores a part of rows by a statement."""

        def save_part(part: Sequence[T]) -> None:
            is_all = lines is not None and len(part) == len(rows)
            self._execute(statement, lines if is_all else lines_of(map(row, part)))

        return save_part

    def _execute(self, statement: TextClause, lines: str | None) -> None:
        parameters = {"cluster": self._cluster, "at": self._at, "rows": lines}
        self._connection.execute(statement, parameters)


def note_closed(connection: Connection, closed: Iterable[Closing]) -> None:
    """Store the outcomes of closing requests; idempotent."""
    for done in closed:
        connection.execute(
            _CLOSED, {"id": done.closing_id, "at": done.done_at, "outcome": done.outcome}
        )


def _lines_of_gone(delta: AlertDelta) -> str:
    """Return the groups that are over; a whole delta has removed all of them before."""
    gone = [] if delta.is_whole else [name for name, group in delta.groups.items() if group is None]
    return lines_of([plain(receiver), group_hash(key)] for receiver, key in gone)


def _name_of_alert(alert: Alert) -> str:
    return f"{alert.rule_id} {dict(alert.labels)}"


class _Contents:
    """Alerts as JSON, each encoded once: an ended one is in a row of its own and in its group."""

    def __init__(self) -> None:
        self._by_id: dict[int, str] = {}  # by id(): the alerts outlive this object

    def of(self, alert: Alert) -> str:
        content = self._by_id.get(id(alert))
        if content is None:
            content = self._by_id[id(alert)] = json_value(encode_alert(alert))
        return content


def _alert_row(alert: Alert, contents: _Contents) -> Sequence[str | None]:
    return (
        plain(alert.rule_id),
        json_value(alert.labels),
        alert.fingerprint,
        alert.severity.value,
        alert.state.value,
        plain(alert.reason),
        contents.of(alert),
        alert.active_at.isoformat(),
        encode_timestamp(alert.fired_at),
        encode_timestamp(alert.resolved_at),
        None if alert.end is None else alert.end.value,
    )


def _step_row(step: HistoryStep) -> Sequence[str | None]:
    return (
        step.fingerprint,
        step.at.isoformat(),
        str(step.step),
        plain(step.reason),
        json_value(step.evidence),
    )


def _group_row(group: Group, contents: _Contents) -> Sequence[str | None]:
    rest = json_value(encode_group(replace(group, ended={})))
    ended = ",".join(contents.of(alert) for alert in group.ended.values())
    content = f'{rest[:-1]},"ended":[{ended}]}}'  # JSONB keeps the last of two values with one key
    return plain(group.receiver), group_hash(group.key), content, group.flush_at.isoformat()
