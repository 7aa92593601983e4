"""Windows in which alerts were open; the nightly job must not learn from them.

What somebody calls an incident counts whatever its severity and its rule, and what is called a false alarm does
not: such a firing is learnt from.

The row of an alert has its last firing, its steps have those before. A lasting alert counts for its first
days only: what lasts longer is no incident any more, and a series without any data to learn from would
have no baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, not_, or_, select

from rules.verdict import Severity
from service.alerting.alerts.acknowledgements import FeedbackKind
from service.alerting.alerts.lifecycle import AlertTransition
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import ALERT, ALERT_FEEDBACK, ALERT_STEP
from service.storage.tables.core import CLUSTER

LONGEST: Final = timedelta(days=3)
SEVERITIES: Final = (Severity.WARNING.value, Severity.CRITICAL.value)
# The rules whose alerts come of the bands themselves, whatever severity an operator gives them: what they
# call unusual would never become usual, and opens for ever.
OWN_OPENINGS: Final = "_unusual"
BEGINS: Final = (AlertTransition.PENDING.value, AlertTransition.FIRED.value)
ENDS: Final = (AlertTransition.RESOLVED.value, AlertTransition.DROPPED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertWindow:
    """One firing of one alert, from the beginning of the breach to its end."""

    begin: datetime  # aware, UTC
    end: datetime  # excluded
    labels: Mapping[str, str]


def alert_windows(
    engine: Engine, cluster: str, begin: datetime, end: datetime
) -> list[AlertWindow]:
    """Return the windows of alerts that fired, cut to [begin, end): warning or worse, or confirmed.

    Windows of one alert may overlap.

    Args:
        engine: of a database whose schema is at head.
        cluster: the configured name.
        begin: aware; of a civil day in UTC.
        end: excluded; what is still open ends here.

    Raises:
        StoreError: the database is away.
    """
    with translate_errors("windows of alerts cannot be read"), engine.connect() as connection:
        last = connection.execute(_last_firings(cluster, begin, end)).all()
        earlier = list(_earlier(connection, cluster, begin, end))
    last_windows = [
        AlertWindow(begin=row.active_at, end=row.resolved_at or end, labels=row.labels)
        for row in last
        if _counts(row, row.feedback)
    ]
    cut = [
        replace(
            window, begin=max(window.begin, begin), end=min(window.end, window.begin + LONGEST, end)
        )
        for window in (*last_windows, *earlier)
    ]
    return [window for window in cut if window.begin < window.end]


def _counts(alert: Any, feedback: str | None) -> bool:
    """Return whether a firing of an alert is one not to learn from."""
    is_confirmed = feedback == FeedbackKind.CONFIRMED
    return is_confirmed or (alert.is_severe and feedback != FeedbackKind.FALSE_ALARM)


def _is_severe() -> ColumnElement[bool]:
    is_judged_by_bands = ALERT.c.rule_id.endswith(OWN_OPENINGS, autoescape=True)
    return and_(ALERT.c.severity.in_(SEVERITIES), not_(is_judged_by_bands))


def _of(cluster: str) -> ColumnElement[bool]:
    """Return the condition for alerts of which a firing may count."""
    named = select(CLUSTER.c.id).where(CLUSTER.c.name == cluster)
    confirmed = select(ALERT_FEEDBACK.c.alert).where(
        ALERT_FEEDBACK.c.feedback == FeedbackKind.CONFIRMED.value
    )
    return and_(ALERT.c.cluster.in_(named), or_(_is_severe(), ALERT.c.id.in_(confirmed)))


def _last_firings(cluster: str, begin: datetime, end: datetime) -> Select[Any]:
    columns = (ALERT.c.labels, ALERT.c.active_at, ALERT.c.resolved_at, ALERT_FEEDBACK.c.feedback)
    of_firing = and_(
        ALERT_FEEDBACK.c.alert == ALERT.c.id, ALERT_FEEDBACK.c.fired_at == ALERT.c.fired_at
    )
    goes_on = or_(ALERT.c.resolved_at.is_(None), ALERT.c.resolved_at > begin)
    fired = (ALERT.c.fired_at < end, goes_on)
    return (
        select(*columns, _is_severe().label("is_severe"))
        .outerjoin_from(ALERT, ALERT_FEEDBACK, of_firing)
        .where(_of(cluster), *fired)
        .order_by(ALERT.c.id)
    )


def _earlier(
    connection: Connection, cluster: str, begin: datetime, end: datetime
) -> Iterator[AlertWindow]:
    """Yield from their steps the firings that began before `end` and ended after `begin`.

    Firings that ended after `end` are included: the alert's row may have a later firing by now.
    """
    ended = select(ALERT_STEP.c.alert).where(
        ALERT_STEP.c.at > begin, ALERT_STEP.c.step == AlertTransition.RESOLVED.value
    )
    columns = (ALERT.c.id, ALERT.c.labels, ALERT_STEP.c.at, ALERT_STEP.c.step)
    steps = (
        select(*columns, _is_severe().label("is_severe"))
        .join_from(ALERT, ALERT_STEP, ALERT_STEP.c.alert == ALERT.c.id)
        .where(_of(cluster), ALERT.c.id.in_(ended))
        .where(ALERT_STEP.c.step.in_([*BEGINS, *ENDS]))
        .order_by(ALERT.c.id, ALERT_STEP.c.id)
    )
    said = _feedback(connection, ended)
    rows = connection.execute(steps)
    for alert, of_alert in groupby(rows, key=lambda row: row.id):
        yield from _firings(of_alert, end, said.get(alert, []))


def _feedback(connection: Connection, alerts: Select[Any]) -> dict[int, list[tuple[datetime, str]]]:
    """Return what was said of firings of these alerts: when each fired, and what."""
    query = select(ALERT_FEEDBACK).where(ALERT_FEEDBACK.c.alert.in_(alerts))
    said: dict[int, list[tuple[datetime, str]]] = {}
    for row in connection.execute(query):
        said.setdefault(row.alert, []).append((row.fired_at, row.feedback))
    return said


def _firings(
    steps: Iterable[Any], end: datetime, said: Sequence[tuple[datetime, str]]
) -> Iterator[AlertWindow]:
    """Yield one alert's firings before `end`; one whose first steps were removed has none."""
    since: datetime | None = None
    has_fired = False
    for step in steps:
        if step.step in BEGINS:
            since = since or step.at
            has_fired |= step.step == AlertTransition.FIRED.value and step.at < end
            continue
        if step.step == AlertTransition.RESOLVED.value and since is not None and has_fired:
            feedback = next((what for at, what in said if since <= at <= step.at), None)
            if _counts(step, feedback):
                yield AlertWindow(begin=since, end=step.at, labels=step.labels)
        since, has_fired = None, False
