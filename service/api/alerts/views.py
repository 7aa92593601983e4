"""Alerts as the API shows them: what is stored of them, and what holds them back now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rules.catalogue.all_rules import EVERY
from rules.evidence import Evidence
from rules.verdict import Kind
from service.alerting.alerts.acknowledgements import Acknowledgement
from service.alerting.alerts.identity import ALERTNAME, Labels
from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import Operator, all_match
from service.alerting.alerts.muting import Muting
from service.api.alerts import models
from service.api.core.admin_services import Sending
from service.api.findings.views import SUMMARIES, finding_id
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.storage.alerting.alert_lists import AlertReading, StoredAlert, StoredStep

KINDS = {rule.meta.rule_id: rule.meta.kind for rule in EVERY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What holds alerts back in this time, and what persons and rules say of them."""

    sending: Sending
    muting: Muting
    acknowledgements: Mapping[tuple[int, str], Acknowledgement]
    evidence: Mapping[int, Evidence]  # by row: what the rule said last


def now_of(
    reading: AlertReading, shown: Sequence[StoredAlert], sending: Sending, now: datetime
) -> Now:
    """Read what belongs to some alerts."""
    targets = [one.alert.labels for one in shown if one.is_active]
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
    """Return the rules whose alerts can hold others back; None: any."""
    found: set[str] = set()
    for inhibition in inhibitions:
        names = [
            m.value
            for m in inhibition.source
            if m.name == ALERTNAME and m.operator is Operator.EQUAL
        ]
        if not names:
            return None
        found.update(names)
    return found


def places_of(rules: Sequence[Inhibition], targets: Sequence[Labels]) -> dict[str, set[str]]:
    """Return what the sources of all rules have to agree in with the targets, by label."""
    names = set.intersection(*(set(rule.equal) for rule in rules))
    return {name: {labels.get(name, "") for labels in targets} for name in names}


def kind_of(stored: StoredAlert) -> Kind:
    """Return how an alert's finding ends; one of a rule that was withdrawn ends by itself."""
    return KINDS.get(stored.alert.rule_id, Kind.STATE)


def alert_view(stored: StoredAlert, now: Now) -> models.Alert:
    """Return an alert."""
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
    """Return who is told of an alert, each once, in the order of the routes."""
    taken = sending.routing.taking(stored.alert.labels)
    return list(dict.fromkeys(route.receiver for route in taken))


def groups_of(stored: StoredAlert, sending: Sending) -> list[tuple[str, str]]:
    """Return receiver and key of every group that an alert is told in."""
    labels, routing = stored.alert.labels, sending.routing
    return [
        (route.receiver, routing.key(route, route.group_labels(labels)))
        for route in routing.taking(labels)
    ]


def ack_view(said: Acknowledgement) -> models.Acknowledgement:
    """Return who took up an alert."""
    return models.Acknowledgement(by=said.by, at=said.at, comment=said.comment)


def step_view(step: StoredStep) -> models.AlertTransition:
    """Return a step of an alert."""
    return models.AlertTransition(
        at=step.at, step=step.step, reason=step.reason, evidence=dict(step.evidence)
    )


def alert_stamp(
    service_state: ServiceState, observed_at: datetime | None, now: datetime
) -> dict[str, Any]:
    """Return of when the stored alerts are, and whether no newer ones wait to be stored."""
    persistence = service_state.persistence
    is_stored = persistence.state is PersistenceState.STORED and not persistence.waiting_rounds
    age = None if observed_at is None else max((now - observed_at).total_seconds(), 0.0)
    return {
        "as_of": observed_at,
        "is_current": is_stored and service_state.is_current and observed_at is not None,
        "age_seconds": age,
    }
