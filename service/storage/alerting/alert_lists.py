"""Alerts as they are stored, for readers and for who acts on one: pages, one with its story, and
what holds an alert back.

What an alert was last is read; whether something holds it back now is for the reader to work out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, RowMapping, Select, bindparam, func, select, tuple_

from rules.evidence import Evidence
from rules.verdict import Severity
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.alert import Alert, AlertState, News
from service.alerting.alerts.identity import ALERTNAME, SEVERITY
from service.alerting.alerts.matchers import MatcherError
from service.alerting.alerts.silences import Silence, SilenceError
from service.storage.alerting.acknowledgements import (
    StoredClosing,
    acknowledgement_of,
    last_closing,
)
from service.storage.alerting.silences import StoredSilence
from service.storage.database.translate import translated
from service.storage.findings.findings import labels_hash
from service.storage.tables.alerting import (
    ACKNOWLEDGEMENT,
    ALERT,
    ALERT_STEP,
    ALERTING_STATE,
    SILENCE,
)
from service.storage.tables.core import CLUSTER, FINDING

LAST_STEPS: Final = 1000  # of one alert
BREACH: Final = "breach"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert and its row. Its labels and fingerprint are those that are stored."""

    id: int
    cluster: int  # row id
    cluster_id: str  # empty if no broker had told it
    alert: Alert
    end_reason: str | None
    updated_at: datetime

    @property
    def is_active(self) -> bool:
        """Whether it is not over."""
        return self.alert.state is not AlertState.RESOLVED

    @property
    def finding(self) -> tuple[str, str]:
        """Return rule and hash of the labels of its finding, as that one's row has them."""
        rule_id, labels = self.alert.finding
        return rule_id, labels_hash(dict(labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """What became of an alert in one round."""

    at: datetime
    step: str
    reason: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Which alerts a page shows; None takes all."""

    states: Collection[AlertState]
    severity: Severity | None = None
    rule_id: str | None = None
    after: tuple[datetime, int] | None = None  # begin and row id of the last one already observed


class AlertList:
    """The alerts of all clusters that had one name."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    @contextmanager
    def reading(self) -> Iterator[AlertReading]:
        """Read over one connection.

        Raises:
            StoreError: the database is away.
        """
        with translated("alerts cannot be read"), self._engine().connect() as connection:
            yield AlertReading(connection, self._name)


class AlertReading:
    """What one request reads."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self._name = name

    def observed_at(self) -> datetime | None:
        """Return the last round whose alerts are stored; None if none is."""
        joined = ALERTING_STATE.join(CLUSTER, CLUSTER.c.id == ALERTING_STATE.c.cluster)
        last = select(func.max(ALERTING_STATE.c.observed_at)).select_from(joined)
        found = self.connection.execute(last.where(CLUSTER.c.name == self._name))
        timestamp: datetime | None = found.scalar_one()
        return timestamp

    def page(self, wanted: AlertFilter, limit: int) -> list[StoredAlert]:
        """Return alerts, those that began last first."""
        query = self._select().where(ALERT.c.state.in_(sorted(wanted.states)))
        if wanted.severity is not None:
            query = query.where(ALERT.c.severity == wanted.severity.value)
        if wanted.rule_id is not None:
            query = query.where(ALERT.c.rule_id == wanted.rule_id)
        if wanted.after is not None:
            active_at, row = wanted.after
            timestamp = bindparam("timestamp", active_at, ALERT.c.active_at.type)
            last = tuple_(timestamp, bindparam("row", row))
            query = query.where(tuple_(ALERT.c.active_at, ALERT.c.id) < last)
        query = query.order_by(ALERT.c.active_at.desc(), ALERT.c.id.desc()).limit(limit)
        return [_stored(row) for row in self.connection.execute(query).mappings()]

    def one(self, fingerprint: str) -> StoredAlert | None:
        """Return the alert of a fingerprint; of several clusters' the one that goes on or went on last."""
        query = self._select().where(ALERT.c.fingerprint == fingerprint)
        newest = query.order_by(
            (ALERT.c.state == AlertState.RESOLVED.value).asc(),
            ALERT.c.updated_at.desc(),
            ALERT.c.id.desc(),
        )
        row = self.connection.execute(newest.limit(1)).mappings().one_or_none()
        return None if row is None else _stored(row)

    def steps(self, alert: int) -> list[StoredStep]:
        """Return the last steps of an alert, oldest first."""
        columns = (ALERT_STEP.c.at, ALERT_STEP.c.step, ALERT_STEP.c.reason, ALERT_STEP.c.evidence)
        of_it = select(*columns).where(ALERT_STEP.c.alert == alert)
        last = of_it.order_by(ALERT_STEP.c.id.desc()).limit(LAST_STEPS)
        rows = [StoredStep(**row) for row in self.connection.execute(last).mappings()]
        return rows[::-1]

    def firing(
        self, rule_ids: Collection[str] | None, places: Mapping[str, Collection[str]]
    ) -> list[Alert]:
        """Return all that fires, of these rules or, for None, of any, with one of these labels each.

        `places` are values by the name of the label; a missing label counts as empty.
        """
        query = self._select().where(ALERT.c.state == AlertState.FIRING.value)
        if rule_ids is not None:
            query = query.where(ALERT.c.rule_id.in_(sorted(rule_ids)))
        for name, values in places.items():
            value = func.coalesce(ALERT.c.labels[name].astext, "")
            query = query.where(value.in_(sorted(values)))
        return [_stored(row).alert for row in self.connection.execute(query).mappings()]

    def silences(self, now: datetime) -> list[Silence]:
        """Return the silences in force; one that this version cannot read holds nothing back."""
        query = select(SILENCE).where(SILENCE.c.starts_at <= now, SILENCE.c.ends_at > now)
        found: list[Silence] = []
        for row in self.connection.execute(query).mappings():
            with suppress(MatcherError, SilenceError):
                found.append(StoredSilence(**row).silence())
        return found

    def closing(self, alert: StoredAlert) -> StoredClosing | None:
        """Return the last wish to close an alert's finding since that began; None if there is none."""
        wish = last_closing(self.connection, alert.cluster, alert.finding)
        is_old = wish is not None and wish.at < alert.alert.active_at
        return None if is_old else wish

    def acknowledgements(
        self, alerts: Sequence[StoredAlert]
    ) -> dict[tuple[int, str], Acknowledgement]:
        """Return what was said of these alerts, by cluster and fingerprint."""
        names = sorted({alert.alert.fingerprint for alert in alerts})
        query = select(ACKNOWLEDGEMENT).where(ACKNOWLEDGEMENT.c.fingerprint.in_(names))
        return {
            (row["cluster"], row["fingerprint"]): acknowledgement_of(row)
            for row in self.connection.execute(query).mappings()
        }

    def last_evidence(self, alerts: Sequence[StoredAlert]) -> dict[int, Evidence]:
        """Return what rules said last of findings that are breaches, by the alert's row.

        Evidence that moves is kept with the finding alone.
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
        found = self.connection.execute(query)
        return {rows[tuple(row[: len(names)])]: row.evidence for row in found}

    def _select(self) -> Select[tuple[object, ...]]:
        joined = ALERT.join(CLUSTER, CLUSTER.c.id == ALERT.c.cluster)
        columns = (ALERT, CLUSTER.c.cluster_id.label("of_cluster_id"))
        return select(*columns).select_from(joined).where(CLUSTER.c.name == self._name)


class _Content(NamedTuple):
    """What only the content of a row tells."""

    finding_labels: Mapping[str, str]
    evidence: Evidence
    news: News


def _content(row: RowMapping) -> _Content:
    """Return it; of a damaged one what the other columns tell: one row must not hide all others."""
    content = row["content"]
    try:
        return _Content(dict(content["labels"]), dict(content["evidence"]), News(*content["news"]))
    except (KeyError, TypeError, ValueError):
        own = (ALERTNAME, SEVERITY)
        labels = {name: value for name, value in row["labels"].items() if name not in own}
        return _Content(labels, {}, News())


def _stored(row: RowMapping) -> StoredAlert:
    content = _content(row)
    return StoredAlert(
        id=row["id"],
        cluster=row["cluster"],
        cluster_id=row["of_cluster_id"],
        end_reason=row["end_reason"],
        updated_at=row["updated_at"],
        alert=Alert(
            finding=(row["rule_id"], tuple(sorted(content.finding_labels.items()))),
            severity=Severity(row["severity"]),
            state=AlertState(row["state"]),
            reason=row["reason"],
            evidence=content.evidence,
            active_at=row["active_at"],
            fired_at=row["fired_at"],
            resolved_at=row["resolved_at"],
            news=content.news,
            labels=row["labels"],
            fingerprint=row["fingerprint"],
        ),
    )
