"""Alerts as the API shows them, with what mutes them now, and the requests that act on one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from rules.catalogue.all_rules import EVERY
from rules.verdict import Kind, Severity
from service.alerting.alerts import acknowledgements as alerting
from service.alerting.alerts.acknowledgements import FeedbackKind
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.identity import ALERTNAME, Labels
from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import Operator, all_match
from service.alerting.alerts.muting import Muting
from service.api.core.admin_services import Sending
from service.api.core.bodies import Body, Remark, Why
from service.api.core.models import NextCursor, Stamped
from service.api.core.queries import PageQuery, Word, require_known_rule
from service.api.deliveries.models import Delivery
from service.api.findings.views import SUMMARIES, finding_id
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.storage.alerting.alert_lists import AlertReading, StoredAlert
from service.views.model import Evidence, Model


class Acknowledgement(Model):
    """Who acknowledged an alert, and when."""

    by: str
    at: datetime
    comment: str


class Feedback(Model):
    """What a person says of the last firing of an alert; baselines learn by it."""

    feedback: Annotated[
        FeedbackKind,
        Field(description="confirmed: an incident, which is not learnt as usual; false_alarm"),
    ]
    by: str
    at: datetime
    comment: str


class Closing(Model):
    """A request to close an event; the next round carries it out."""

    by: str
    at: datetime
    why: str
    done_at: Annotated[datetime | None, Field(description="null: no round has carried it out yet")]
    outcome: str | None


class Alert(Model):
    """An alert as it was last stored."""

    fingerprint: Annotated[str, Field(description="Alertmanager's, of the labels")]
    cluster_id: str | None
    finding_id: Annotated[str, Field(description="The id of its finding in /findings")]
    rule: str
    summary: str | None
    """The rule's summary; null: the rule was withdrawn"""
    kind: Annotated[Kind, Field(description="event: a person may close it")]
    severity: Severity
    state: AlertState
    reason: Annotated[str, Field(description="What the rule last said")]
    labels: dict[str, str]
    evidence: Evidence
    active_at: Annotated[datetime, Field(description="Since when the breach has lasted")]
    fired_at: Annotated[datetime | None, Field(description="null: it has not fired")]
    resolved_at: datetime | None
    end_reason: str | None
    updated_at: datetime
    receivers: list[str]
    """Receivers that the current routes notify of it"""
    silenced_by: Annotated[list[str], Field(description="Ids of the silences that mute it now")]
    inhibited_by: str | None
    """Fingerprint of a firing alert that inhibits it"""
    acknowledged: Acknowledgement | None
    """null: nobody did, or it happened again since"""
    feedback: Feedback | None
    """null: nobody said what its last firing was"""


class AlertStamped(Stamped):
    """An answer about stored alerts; `as_of` is the last stored round."""

    age_seconds: float | None
    """Since `as_of`; null before the first stored round"""


class AlertPage(AlertStamped):
    """Alerts, the latest first; a page may be short, only a null `next` marks the end."""

    items: list[Alert]
    next: NextCursor
    counts: dict[AlertState, int] | None
    """Of all pages, by state; null if they are selected by receiver"""


class AlertTransition(Model):
    """One step in the life of an alert."""

    at: datetime
    step: str
    reason: str
    evidence: Evidence


class AlertDetail(AlertStamped):
    """An alert with its steps and notifications."""

    alert: Alert
    steps: Annotated[list[AlertTransition], Field(description="The last 1000, oldest first")]
    notified: list[Delivery]
    """The last 50 to its groups since it began, newest first"""
    closing: Closing | None
    runbook_url: str | None
    """URL of the rule's page, if a base URL is set"""


class AckBody(Body):
    """The comment of an acknowledgement."""

    comment: Remark = ""


class FeedbackBody(Body):
    """What the last firing of an alert was."""

    feedback: FeedbackKind
    comment: Remark = ""


class CloseBody(Body):
    """Why an event is closed."""

    why: Why


class AckDetail(Stamped):
    """The acknowledgement in force."""

    fingerprint: str
    acknowledged: Acknowledgement


class FeedbackDetail(Stamped):
    """The feedback that holds from now on."""

    fingerprint: str
    state: AlertState
    acknowledged: Acknowledgement | None
    """null: nobody did, or it happened again since"""
    feedback: Feedback


class ClosingDetail(Stamped):
    """The closing that the next round carries out."""

    fingerprint: str
    closing: Closing


class AlertFilter(StrEnum):
    """Which alerts, by their state."""

    ACTIVE = "active"
    PENDING = AlertState.PENDING.value
    FIRING = AlertState.FIRING.value
    RESOLVED = AlertState.RESOLVED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[AlertState]:
        """Return the states that the filter lets through."""
        match self:
            case AlertFilter.ACTIVE:
                return frozenset({AlertState.PENDING, AlertState.FIRING})
            case AlertFilter.ALL:
                return frozenset(AlertState)
            case _:
                return frozenset({AlertState(self.value)})


class AlertQuery(PageQuery):
    """Which alerts."""

    state: AlertFilter = AlertFilter.ACTIVE
    """active: pending or firing"""
    severity: Severity | None = None
    rule: Annotated[str | None, AfterValidator(require_known_rule)] = None
    receiver: Word | None = None
    """Only alerts that the current routes send to this receiver"""


KINDS = {rule.meta.rule_id: rule.meta.kind for rule in EVERY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What mutes alerts now, what people said of them, and their latest evidence."""

    sending: Sending
    muting: Muting
    acknowledgements: Mapping[tuple[int, str], alerting.Acknowledgement]
    feedback: Mapping[int, alerting.Feedback]  # by row id
    evidence: Mapping[int, Mapping[str, Any]]  # by row id: the rule's latest


def now_of(
    reading: AlertReading, shown: Sequence[StoredAlert], sending: Sending, now: datetime
) -> Now:
    """Read what is in force for the given alerts."""
    targets = [stored.alert.labels for stored in shown if stored.is_active]
    rules = [
        rule
        for rule in sending.inhibitions
        if any(all_match(rule.target, labels) for labels in targets)
    ]
    firing = reading.firing(source_rules(rules), places_of(rules, targets)) if rules else []
    return Now(
        sending=sending,
        muting=Muting(reading.silences(now), rules, firing, now),
        acknowledgements=reading.acknowledgements(shown),
        feedback=reading.feedback(shown),
        evidence=reading.last_evidence(shown),
    )


def source_rules(inhibitions: Sequence[Inhibition]) -> Collection[str] | None:
    """Return the rules whose alerts can inhibit others; None: any rule."""
    rule_ids: set[str] = set()
    for inhibition in inhibitions:
        names = [
            m.value
            for m in inhibition.source
            if m.name == ALERTNAME and m.operator is Operator.EQUAL
        ]
        if not names:
            return None
        rule_ids.update(names)
    return rule_ids


def places_of(rules: Sequence[Inhibition], targets: Sequence[Labels]) -> dict[str, set[str]]:
    """Return by label the target values that a source must share under every inhibition."""
    names = set.intersection(*(set(rule.equal) for rule in rules))
    return {name: {labels.get(name, "") for labels in targets} for name in names}


def kind_of(stored: StoredAlert) -> Kind:
    """Return the kind of an alert's finding; a withdrawn rule counts as a state."""
    return KINDS.get(stored.alert.rule_id, Kind.STATE)


def alert_view(stored: StoredAlert, now: Now) -> Alert:
    """Return an alert as the API shows it."""
    alert, name = stored.alert, stored.alert.fingerprint
    muted = now.muting.of(alert)
    acknowledgement = now.acknowledgements.get((stored.cluster, name))
    is_held = acknowledgement is not None and acknowledgement.holds_for(alert)
    feedback = now.feedback.get(stored.id)
    return Alert(
        fingerprint=name,
        cluster_id=stored.cluster_id or None,
        finding_id=finding_id(alert.rule_id, dict(alert.finding[1])),
        rule=alert.rule_id,
        summary=SUMMARIES.get(alert.rule_id),
        kind=kind_of(stored),
        severity=alert.severity,
        state=alert.state,
        reason=alert.reason,
        labels=dict(alert.labels),
        evidence=dict(now.evidence.get(stored.id, alert.evidence)),
        active_at=alert.active_at,
        fired_at=alert.fired_at,
        resolved_at=alert.resolved_at,
        end_reason=stored.end_reason,
        updated_at=stored.updated_at,
        receivers=receivers_of(stored, now.sending),
        silenced_by=list(muted.silenced_by) if stored.is_active else [],
        inhibited_by=muted.inhibited_by if stored.is_active else None,
        acknowledged=Acknowledgement.model_validate(acknowledgement) if is_held else None,
        feedback=None if feedback is None else Feedback.model_validate(feedback),
    )


def receivers_of(stored: StoredAlert, sending: Sending) -> list[str]:
    """Return the receivers of an alert, each once, in the order of the routes."""
    taken = sending.routing.taking(stored.alert.labels)
    return list(dict.fromkeys(route.receiver for route in taken))


def groups_of(stored: StoredAlert, sending: Sending) -> list[tuple[str, str]]:
    """Return receiver and group key of every notification group of an alert."""
    labels, routing = stored.alert.labels, sending.routing
    return [
        (route.receiver, routing.key(route, route.group_labels(labels)))
        for route in routing.taking(labels)
    ]


def alert_stamp(
    service_state: ServiceState, observed_at: datetime | None, now: datetime
) -> dict[str, Any]:
    """Return the time of the stored alerts, and whether no newer round waits to be stored."""
    persistence = service_state.persistence
    is_stored = persistence.state is PersistenceState.STORED and not persistence.waiting_rounds
    age = None if observed_at is None else max((now - observed_at).total_seconds(), 0.0)
    return {
        "as_of": observed_at,
        "is_current": is_stored and service_state.is_current and observed_at is not None,
        "age_seconds": age,
    }
