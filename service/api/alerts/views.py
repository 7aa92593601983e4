"""Alerts as the API shows them: what is stored, and what mutes them now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rules.catalogue.all_rules import EVERY
from rules.evidence import Evidence
from rules.verdict import Kind
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.delta import HistoryStep
from service.alerting.alerts.identity import ALERTNAME, Labels
from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import Operator, all_match
from service.alerting.alerts.muting import Muting
from service.api.alerts import models
from service.api.core.admin_services import Sending
from service.api.findings.views import SUMMARIES, finding_id
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.storage.alerting.alert_lists import AlertReading, StoredAlert

KINDS = {rule.meta.rule_id: rule.meta.kind for rule in EVERY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What mutes alerts now, their acknowledgements, and their latest evidence."""

    sending: Sending
    muting: Muting
    acknowledgements: Mapping[tuple[int, str], Acknowledgement]
    evidence: Mapping[int, Evidence]  # by row id: the rule's latest


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


def alert_view(stored: StoredAlert, now: Now) -> models.Alert:
    """Return an alert as the API shows it."""
    alert, name = stored.alert, stored.alert.fingerprint
    muted = now.muting.of(alert)
    said = now.acknowledgements.get((stored.cluster, name))
    return models.Alert(
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
        acknowledged=ack_view(said) if said is not None and said.holds_for(alert) else None,
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


def ack_view(said: Acknowledgement) -> models.Acknowledgement:
    """Return an acknowledgement as the API shows it."""
    return models.Acknowledgement(by=said.by, at=said.at, comment=said.comment)


def step_view(step: HistoryStep) -> models.AlertTransition:
    """Return a step of an alert as the API shows it."""
    return models.AlertTransition(
        at=step.at, step=step.step, reason=step.reason, evidence=dict(step.evidence)
    )


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
