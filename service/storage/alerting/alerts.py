"""The state of alerting as rows: a few statements per round, however many alerts changed.

An alert keeps its row when it fires again, and its steps are its history. Resolved alerts stay for that
history; only recently resolved ones are loaded into the state of alerting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, and_, or_, select, text

from rules.open_findings import Identity, OpenFinding
from service.alerting.alerts.alert import RESOLVED_KEPT, Alert, AlertEnd, AlertState
from service.alerting.alerts.codec import decode_alert, decode_group
from service.alerting.alerts.delta import AlertDelta, HistoryStep
from service.alerting.alerts.grouping import AlertingState, Group
from service.alerting.alerts.lifecycle import with_latest
from service.storage.alerting.alert_rows import AlertRows, RowWriter
from service.storage.database.rejections import RejectedRow
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import ALERT, ALERT_GROUP, ALERTING_STATE

T = TypeVar("T")

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
_SAID: Final = text("""
UPDATE alert_feedback AS f SET fired_at = a.fired_at FROM alert AS a
WHERE a.cluster = :cluster AND f.alert = a.id AND f.fired_at + CAST(:step AS interval) = a.fired_at
""")
_OBSERVED: Final = text("""
INSERT INTO alerting_state (cluster, observed_at) VALUES (:cluster, :at)
ON CONFLICT (cluster) DO UPDATE SET observed_at = excluded.observed_at
""")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedAlerting:
    """The stored state of one cluster's alerting."""

    state: AlertingState = field(default_factory=AlertingState)
    error: str | None = None  # why not all of it could be read


def save(
    connection: Connection, cluster: int, delta: AlertDelta, rows: AlertRows | None = None
) -> list[RejectedRow]:
    """Store a delta and put its notifications into the outbox; idempotent.

    `rows` are the delta's, if they were made before. Return the rows that the database rejects for good.

    Raises:
        StoreError: the error is not of a row.
    """
    stored_at = _observed_at(connection, cluster)
    if delta.is_whole:
        _end_others(connection, cluster, delta)
        connection.execute(_ALL_GROUPS_GONE, {"cluster": cluster})
    writer = RowWriter(connection, cluster, delta.at)
    new_steps = _list_new_steps(delta, stored_at)
    has_all_steps = len(new_steps) == len(delta.steps)
    rejected = [
        *writer.alerts(list(delta.alerts.values()), None if rows is None else rows.alerts),
        *writer.steps(new_steps, rows.steps if rows is not None and has_all_steps else None),
        *writer.groups(delta, None if rows is None else rows.groups),
        *writer.outgoing(delta.outgoing),
        *writer.closed(delta.closed),
    ]
    if delta.clock_step:
        for moved in (_TAKEN_UP, _SAID):
            connection.execute(moved, {"cluster": cluster, "step": delta.clock_step})
    if delta.observed_at is not None and delta.observed_at != stored_at:
        connection.execute(_OBSERVED, {"cluster": cluster, "at": delta.observed_at})
    return rejected


def save_sent(connection: Connection, cluster: int, delta: AlertDelta) -> list[RejectedRow]:
    """Store what alerting considers done and would not repeat: notifications, and outcomes of closings.

    Return the rows that the database rejects for good; `save` does all of it.
    """
    writer = RowWriter(connection, cluster, delta.at)
    return [*writer.outgoing(delta.outgoing), *writer.closed(delta.closed)]


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


def _list_new_steps(delta: AlertDelta, stored_at: datetime | None) -> Sequence[HistoryStep]:
    """Return the steps that are not stored yet: the answer to an earlier COMMIT may have been lost.

    After a clock step everything is written anew, and times can no longer be compared.
    """
    if stored_at is None or delta.is_whole:
        return delta.steps
    return [step for step in delta.steps if step.at > stored_at]


def _end_others(connection: Connection, cluster: int, delta: AlertDelta) -> None:
    parameters = {
        "cluster": cluster,
        "at": delta.at,
        "at_text": delta.at.isoformat(),
        "why": AlertEnd.NOT_SEEN.value,
        "names": " ".join(delta.alerts),
    }
    connection.execute(_OTHERS_OVER, parameters)
