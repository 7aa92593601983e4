"""The state of alerting as rows: a few statements per round, however many alerts changed.

An alert keeps its row when it fires again, and its steps are its history. Resolved alerts stay for that
history; only recently resolved ones are loaded into the state of alerting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, and_, or_, select, text

from rules.open_findings import Identity, OpenFinding
from service.alerting.alerts.alert import RESOLVED_KEPT, Alert, AlertEnd, AlertState
from service.alerting.alerts.codec import (
    decode_alert,
    decode_group,
    encode_alert,
    encode_group,
    encode_timestamp,
)
from service.alerting.alerts.delta import AlertDelta, Closing, HistoryStep
from service.alerting.alerts.grouping import AlertingState, Group
from service.alerting.alerts.lifecycle import with_latest
from service.alerting.alerts.outbox_row import group_hash
from service.storage.database.bulk import json_value, lines_of, plain, rows_from
from service.storage.database.translate import translate_errors
from service.storage.delivery.enqueuing import enqueue
from service.storage.tables.alerting import ALERT, ALERT_GROUP, ALERTING_STATE

T = TypeVar("T")

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
_ALL_GROUPS_GONE: Final = text("DELETE FROM alert_group WHERE cluster = :cluster")
# Alerts that a whole delta does not contain are resolved, also in their content.
_OTHERS_OVER: Final = text("""
UPDATE alert SET state = 'resolved', resolved_at = :at, end_reason = :why, updated_at = :at,
    content = content || jsonb_build_object(
        'state', 'resolved', 'resolved_at', CAST(:at_text AS text), 'end', CAST(:why AS text),
        'keep_firing_since', NULL)
WHERE cluster = :cluster AND state <> 'resolved'
  AND fingerprint NOT IN (SELECT string_to_table(CAST(:names AS text), ' '))
""")
# Idempotent: after the first time none differs by the step any more.
_TAKEN_UP: Final = text("""
UPDATE acknowledgement AS k SET fired_at = a.fired_at FROM alert AS a
WHERE k.cluster = :cluster AND a.cluster = k.cluster AND a.fingerprint = k.fingerprint
  AND k.fired_at + CAST(:step AS interval) = a.fired_at
""")
_OBSERVED: Final = text("""
INSERT INTO alerting_state (cluster, observed_at) VALUES (:cluster, :at)
ON CONFLICT (cluster) DO UPDATE SET observed_at = excluded.observed_at
""")
_CLOSED: Final = text(
    "UPDATE closing SET done_at = :at, outcome = :outcome WHERE id = :id AND done_at IS NULL"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedAlerting:
    """The stored state of one cluster's alerting."""

    state: AlertingState = field(default_factory=AlertingState)
    error: str | None = None  # why not all of it could be read


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRows:
    """A delta as lines for the database; empty for no rows."""

    alerts: str
    steps: str
    groups: str
    gone: str  # groups


def rows_of(delta: AlertDelta) -> AlertRows:
    """Return a delta as lines; it takes a while and needs no database."""
    contents = _Contents()
    left = [group for group in delta.groups.values() if group is not None]
    gone = [] if delta.is_whole else [name for name, group in delta.groups.items() if group is None]
    return AlertRows(
        alerts=lines_of(_alert_row(alert, contents) for alert in delta.alerts.values()),
        steps=lines_of(map(_step_row, delta.steps)),
        groups=lines_of(_group_row(group, contents) for group in left),
        gone=lines_of([plain(receiver), group_hash(key)] for receiver, key in gone),
    )


def save(
    connection: Connection, cluster: int, delta: AlertDelta, rows: AlertRows | None = None
) -> None:
    """Store a delta and put its notifications into the outbox; idempotent.

    `rows` are the delta's, if they were made before.
    """
    rows = rows_of(delta) if rows is None else rows
    parameters = {"cluster": cluster, "at": delta.at}
    stored_at = _observed_at(connection, cluster)
    if delta.is_whole:
        _end_others(connection, cluster, delta)
        connection.execute(_ALL_GROUPS_GONE, {"cluster": cluster})
    for statement, lines in (
        (_UPSERT, rows.alerts),
        (_STEPS, _new_steps(delta, rows, stored_at)),
        (_GROUPS_GONE, rows.gone),
        (_GROUPS, rows.groups),
    ):
        if lines:
            connection.execute(statement, {**parameters, "rows": lines})
    if delta.clock_step:
        connection.execute(_TAKEN_UP, {"cluster": cluster, "step": delta.clock_step})
    enqueue(connection, cluster, delta.outgoing)
    note_closed(connection, delta.closed)
    if delta.observed_at is not None and delta.observed_at != stored_at:
        connection.execute(_OBSERVED, {"cluster": cluster, "at": delta.observed_at})


def note_closed(connection: Connection, closed: Iterable[Closing]) -> None:
    """Store the outcomes of closing requests; idempotent."""
    for done in closed:
        connection.execute(
            _CLOSED, {"id": done.closing_id, "at": done.done_at, "outcome": done.outcome}
        )


def load(
    engine: Engine, cluster: int, open_findings: Mapping[Identity, OpenFinding]
) -> LoadedAlerting:
    """Return the stored state of a cluster's alerting (its row id).

    Rows that cannot be decoded are left out and reported: one damaged row must not silence all others.

    Raises:
        StoreError: the database rejected the query or is away.
    """
    with translate_errors("alerts cannot be read"), engine.connect() as connection:
        observed_at = _observed_at(connection, cluster)
        query = select(ALERT.c.content).where(
            ALERT.c.cluster == cluster, _remembered_rows(observed_at)
        )
        alerts = connection.execute(query.order_by(ALERT.c.id)).scalars().all()
        groups = connection.execute(
            select(ALERT_GROUP.c.content).where(ALERT_GROUP.c.cluster == cluster)
        ).scalars()
        decoded = [_try(partial(decode_alert, alert)) for alert in alerts]
        together = [_try(partial(decode_group, group)) for group in groups]
    errors = [error for error in (*decoded, *together) if isinstance(error, str)]
    state = AlertingState(
        alerts={alert.key: alert for alert in decoded if isinstance(alert, Alert)},
        groups={group.group_id: group for group in together if isinstance(group, Group)},
        observed_at=observed_at,
    )
    return LoadedAlerting(
        state=with_evidence(state, open_findings),
        error=f"{len(errors)} rows of alerts: {errors[0]}" if errors else None,
    )


def _observed_at(connection: Connection, cluster: int) -> datetime | None:
    mine = ALERTING_STATE.c
    query = select(mine.observed_at).where(mine.cluster == cluster)
    return connection.execute(query).scalar_one_or_none()


def _remembered_rows(observed_at: datetime | None) -> ColumnElement[bool]:
    """Return the condition of active and recently resolved alerts."""
    goes_on = ALERT.c.state != AlertState.RESOLVED.value
    if observed_at is None:
        return goes_on
    is_lately_over = and_(
        ALERT.c.fired_at.is_not(None),  # an alert that never fired is forgotten at its end
        ALERT.c.resolved_at >= observed_at - RESOLVED_KEPT,
    )
    return or_(goes_on, is_lately_over)


def with_evidence(
    state: AlertingState, open_findings: Mapping[Identity, OpenFinding]
) -> AlertingState:
    """Return a state in which every alert has the latest reason and evidence of its finding."""
    alerts = {
        key: with_latest(alert, open_findings.get(alert.finding))
        for key, alert in state.alerts.items()
    }
    return replace(state, alerts=alerts)


def _try(read: Callable[[], T]) -> T | str:
    """Return the decoded value, or the error as text."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        return repr(exc)


def _new_steps(delta: AlertDelta, rows: AlertRows, stored_at: datetime | None) -> str:
    """Return the steps that are not stored yet: the answer to an earlier COMMIT may have been lost.

    After a clock step everything is written anew, and times can no longer be compared.
    """
    if stored_at is None or delta.is_whole:
        return rows.steps
    new = [step for step in delta.steps if step.at > stored_at]
    return rows.steps if len(new) == len(delta.steps) else lines_of(map(_step_row, new))


def _end_others(connection: Connection, cluster: int, delta: AlertDelta) -> None:
    parameters = {
        "cluster": cluster,
        "at": delta.at,
        "at_text": delta.at.isoformat(),
        "why": AlertEnd.NOT_SEEN.value,
        "names": " ".join(delta.alerts),
    }
    connection.execute(_OTHERS_OVER, parameters)


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
