"""Stored alerts for readers: pages, one alert with its steps, and the silences and alerts that may mute it.

Only the stored state is read here; whether an alert is muted now is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    bindparam,
    func,
    select,
    tuple_,
)

from rules.evidence import Evidence
from rules.verdict import Severity
from service.alerting.alerts.acknowledgements import Acknowledgement, Feedback
from service.alerting.alerts.alert import Alert, AlertState, News
from service.alerting.alerts.delta import Closing, HistoryStep
from service.alerting.alerts.identity import ALERTNAME, SEVERITY
from service.alerting.alerts.lifecycle import AlertTransition
from service.alerting.alerts.silences import Silence
from service.storage.alerting.acknowledgements import acknowledgement_of, feedback_of, last_closing
from service.storage.alerting.silences import parse_silence, silence_of
from service.storage.database.translate import translate_errors
from service.storage.findings.findings import labels_hash
from service.storage.tables.alerting import (
    ACKNOWLEDGEMENT,
    ALERT,
    ALERT_FEEDBACK,
    ALERT_STEP,
    ALERTING_STATE,
    SILENCE,
)
from service.storage.tables.core import CLUSTER, FINDING

LAST_STEPS: Final = 1000  # of one alert
BREACH: Final = "breach"
_OF_CLUSTER: Final = ALERT.join(CLUSTER, CLUSTER.c.id == ALERT.c.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert and its row. Its labels and fingerprint are those that are stored."""

    id: int
    cluster: int  # row id
    cluster_id: str  # empty if no broker had reported it
    alert: Alert
    end_reason: str | None
    updated_at: datetime

    @property
    def is_active(self) -> bool:
        """Whether it has not been resolved."""
        return self.alert.state is not AlertState.RESOLVED

    @property
    def finding(self) -> tuple[str, str]:
        """Return rule id and labels hash of its finding, as stored."""
        rule_id, labels = self.alert.finding
        return rule_id, labels_hash(dict(labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Which alerts a page shows; None takes all."""

    states: Collection[AlertState]
    severity: Severity | None = None
    rule_id: str | None = None
    after: tuple[datetime, int] | None = None  # start and row id of the last one already read


class AlertList:
    """The alerts of all clusters that had one name."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    @contextmanager
    def reading(self) -> Iterator[AlertReading]:
        """Open a reading over one connection.

        Raises:
            StoreError: the database is away.
        """
        with translate_errors("alerts cannot be read"), self._engine().connect() as connection:
            yield AlertReading(connection, self._name)


class AlertReading:
    """Queries of one request over one connection."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self._name = name

    def observed_at(self) -> datetime | None:
        """Return the time of the last round whose alerts are stored; None if none is."""
        joined = ALERTING_STATE.join(CLUSTER, CLUSTER.c.id == ALERTING_STATE.c.cluster)
        last = select(func.max(ALERTING_STATE.c.observed_at)).select_from(joined)
        answer = self.connection.execute(last.where(CLUSTER.c.name == self._name))
        timestamp: datetime | None = answer.scalar_one()
        return timestamp

    def page(self, filters: AlertFilter, limit: int) -> list[StoredAlert]:
        """Return alerts, the latest first."""
        query = self._select().where(*_conditions(filters))
        if filters.after is not None:
            active_at, row = filters.after
            timestamp = bindparam("timestamp", active_at, ALERT.c.active_at.type)
            last = tuple_(timestamp, bindparam("row", row))
            query = query.where(tuple_(ALERT.c.active_at, ALERT.c.id) < last)
        query = query.order_by(ALERT.c.active_at.desc(), ALERT.c.id.desc()).limit(limit)
        return [_alert_of(row) for row in self.connection.execute(query).mappings()]

    def counts(self, filters: AlertFilter) -> dict[AlertState, int]:
        """Return how many alerts there are on all pages, by state; a state without any is left out."""
        query = select(ALERT.c.state, func.count()).select_from(_OF_CLUSTER)
        chosen = query.where(CLUSTER.c.name == self._name, *_conditions(filters))
        rows = self.connection.execute(chosen.group_by(ALERT.c.state))
        return {AlertState(state): count for state, count in rows}

    def one(self, fingerprint: str) -> StoredAlert | None:
        """Return the alert of a fingerprint; among clusters an active one first, then the last updated."""
        query = self._select().where(ALERT.c.fingerprint == fingerprint)
        newest = query.order_by(
            (ALERT.c.state == AlertState.RESOLVED.value).asc(),
            ALERT.c.updated_at.desc(),
            ALERT.c.id.desc(),
        )
        row = self.connection.execute(newest.limit(1)).mappings().one_or_none()
        return None if row is None else _alert_of(row)

    def steps(self, alert: StoredAlert) -> list[HistoryStep]:
        """Return the last steps of an alert, oldest first."""
        columns = (ALERT_STEP.c.at, ALERT_STEP.c.step, ALERT_STEP.c.reason, ALERT_STEP.c.evidence)
        of_it = select(*columns).where(ALERT_STEP.c.alert == alert.id)
        last = of_it.order_by(ALERT_STEP.c.id.desc()).limit(LAST_STEPS)
        rows = self.connection.execute(last).mappings().all()
        name = alert.alert.fingerprint
        return [HistoryStep(fingerprint=name, **row) for row in reversed(rows)]

    def firing(
        self, rule_ids: Collection[str] | None, places: Mapping[str, Collection[str]]
    ) -> list[Alert]:
        """Return firing alerts of these rules (None: any) whose labels have one of the given values each.

        `places` maps a label's name to its values; a missing label counts as empty.
        """
        query = self._select().where(ALERT.c.state == AlertState.FIRING.value)
        if rule_ids is not None:
            query = query.where(ALERT.c.rule_id.in_(sorted(rule_ids)))
        for name, values in places.items():
            value = func.coalesce(ALERT.c.labels[name].astext, "")
            query = query.where(value.in_(sorted(values)))
        return [_alert_of(row).alert for row in self.connection.execute(query).mappings()]

    def silences(self, now: datetime) -> list[Silence]:
        """Return the silences in force; one that this version cannot parse is ignored."""
        query = select(SILENCE).where(SILENCE.c.starts_at <= now, SILENCE.c.ends_at > now)
        rows = self.connection.execute(query).mappings()
        silences = [parse_silence(silence_of(row)) for row in rows]
        return [silence for silence in silences if silence is not None]

    def closing(self, alert: StoredAlert) -> Closing | None:
        """Return the last request to close an alert's finding since it began; None if there is none."""
        wish = last_closing(self.connection, alert.cluster, alert.finding)
        is_old = wish is not None and wish.at < alert.alert.active_at
        return None if is_old else wish

    def acknowledgements(
        self, alerts: Sequence[StoredAlert]
    ) -> dict[tuple[int, str], Acknowledgement]:
        """Return the acknowledgements of these alerts, by cluster row id and fingerprint."""
        names = sorted({alert.alert.fingerprint for alert in alerts})
        query = select(ACKNOWLEDGEMENT).where(ACKNOWLEDGEMENT.c.fingerprint.in_(names))
        return {
            (row["cluster"], row["fingerprint"]): acknowledgement_of(row)
            for row in self.connection.execute(query).mappings()
        }

    def feedback(self, alerts: Sequence[StoredAlert]) -> dict[int, Feedback]:
        """Return what was said of the last firing of these alerts, by their row ids."""
        firings = sorted(self.last_fired(alerts).items())
        of_last = tuple_(ALERT_FEEDBACK.c.alert, ALERT_FEEDBACK.c.fired_at).in_(firings)
        rows = self.connection.execute(select(ALERT_FEEDBACK).where(of_last)).mappings()
        return {row["alert"]: feedback_of(row) for row in rows}

    def last_fired(self, alerts: Sequence[StoredAlert]) -> dict[int, datetime]:
        """Return when these alerts fired last, by their row ids; one that never did is left out.

        An alert that is pending once more has fired before: its steps say when.
        """
        fired = {alert.id: alert.alert.fired_at for alert in alerts}
        again = [row for row, at in fired.items() if at is None]
        query = select(ALERT_STEP.c.alert, func.max(ALERT_STEP.c.at).label("last")).where(
            ALERT_STEP.c.alert.in_(again), ALERT_STEP.c.step == AlertTransition.FIRED.value
        )
        last = {row: at for row, at in fired.items() if at is not None}
        if again:
            rows = self.connection.execute(query.group_by(ALERT_STEP.c.alert))
            last |= {row.alert: row.last for row in rows}
        return last

    def last_evidence(self, alerts: Sequence[StoredAlert]) -> dict[int, Evidence]:
        """Return the latest evidence of findings in breach, by the alert's row id.

        Evidence that changes during a breach is stored with the finding only.
        """
        rows = {
            (alert.cluster, *alert.finding, alert.alert.severity.value): alert.id
            for alert in alerts
            if alert.is_active
        }
        names = ("cluster", "rule_id", "labels_hash", "severity")
        key = [FINDING.c[name] for name in names]
        breaches = (FINDING.c.ended_at.is_(None), FINDING.c.verdict == BREACH)
        query = select(*key, FINDING.c.evidence).where(tuple_(*key).in_(sorted(rows)), *breaches)
        findings = self.connection.execute(query)
        return {rows[tuple(row[: len(names)])]: row.evidence for row in findings}

    def _select(self) -> Select[tuple[object, ...]]:
        columns = (ALERT, CLUSTER.c.cluster_id.label("of_cluster_id"))
        return select(*columns).select_from(_OF_CLUSTER).where(CLUSTER.c.name == self._name)


def _conditions(filters: AlertFilter) -> Iterator[ColumnElement[bool]]:
    yield ALERT.c.state.in_(sorted(filters.states))
    if filters.severity is not None:
        yield ALERT.c.severity == filters.severity.value
    if filters.rule_id is not None:
        yield ALERT.c.rule_id == filters.rule_id


def _content(row: RowMapping) -> tuple[Mapping[str, str], Evidence, News]:
    """Return the finding's labels, the evidence and the news, which only the column `content` holds.

    If it is damaged, fall back to the other columns: one row must not hide all others.
    """
    content = row["content"]
    try:
        return dict(content["labels"]), dict(content["evidence"]), News(*content["news"])
    except (KeyError, TypeError, ValueError):
        own = (ALERTNAME, SEVERITY)
        labels = {name: value for name, value in row["labels"].items() if name not in own}
        return labels, {}, News()


def _alert_of(row: RowMapping) -> StoredAlert:
    labels, evidence, news = _content(row)
    return StoredAlert(
        id=row["id"],
        cluster=row["cluster"],
        cluster_id=row["of_cluster_id"],
        end_reason=row["end_reason"],
        updated_at=row["updated_at"],
        alert=Alert(
            finding=(row["rule_id"], tuple(sorted(labels.items()))),
            severity=Severity(row["severity"]),
            state=AlertState(row["state"]),
            reason=row["reason"],
            evidence=evidence,
            active_at=row["active_at"],
            fired_at=row["fired_at"],
            resolved_at=row["resolved_at"],
            news=news,
            labels=row["labels"],
            fingerprint=row["fingerprint"],
        ),
    )
