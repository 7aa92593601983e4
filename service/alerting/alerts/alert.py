"""An alert: the state of one label set, as a plain value that is stored unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from rules.evidence import Evidence
from rules.open_findings import EndReason, Identity
from rules.verdict import Severity
from service.alerting.alerts.identity import AlertKey, Labels, fingerprint, labels_of

# Prometheus' own: for so long a resolved alert is kept, and can be sent again.
RESOLVED_KEPT: Final = timedelta(minutes=15)


class AlertState(StrEnum):
    """Where an alert is. Prometheus calls the last one inactive."""

    PENDING = "pending"  # a breach that has not lasted for its rule's `for` yet
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertEnd(StrEnum):
    """Why an alert ended: the finding's own reasons, and three that only alerts have."""

    OK = "ok"
    SUBJECT_GONE = "subject_gone"
    EXPIRED = "expired"
    CLOSED = "closed"
    SEVERITY_CHANGED = "severity_changed"  # it continues as another alert
    FOR_RAISED = "for_raised"  # its rule now waits for longer than it has lasted
    NOT_SEEN = "not_seen"  # its finding ended in a round that never came here

    @classmethod
    def of(cls, reason: EndReason | None) -> AlertEnd:
        """Translate why a finding ended; None if no reason is known."""
        return cls.NOT_SEEN if reason is None else cls(reason.value)


class News(NamedTuple):
    """How many updates of an alert were worth a notification; grows while it lasts."""

    occurrences: int = 1  # an event can happen again
    revisions: int = 0  # more became known about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One label set, from the first breach to a while after its end."""

    finding: Identity
    severity: Severity
    state: AlertState
    reason: str  # what the rule last said
    evidence: Evidence
    active_at: datetime  # aware, UTC: since when the breach has lasted
    fired_at: datetime | None = None  # None: pending
    keep_firing_since: datetime | None = None  # the first round that missed it
    resolved_at: datetime | None = None
    end: AlertEnd | None = None  # why it ended, or will once it is kept firing no longer
    news: News = field(default_factory=News)
    labels: Labels
    fingerprint: str

    @classmethod
    def begin(
        cls,
        key: AlertKey,
        *,
        reason: str,
        evidence: Evidence,
        active_at: datetime,
        fired_at: datetime | None = None,
    ) -> Alert:
        """Return a new alert: pending, or firing if `fired_at` is given."""
        identity, severity = key
        labels = labels_of(identity, severity, evidence)
        return cls(
            finding=identity,
            severity=severity,
            state=AlertState.PENDING if fired_at is None else AlertState.FIRING,
            reason=reason,
            evidence=evidence,
            active_at=active_at,
            fired_at=fired_at,
            labels=labels,
            fingerprint=fingerprint(labels),
        )

    @property
    def key(self) -> AlertKey:
        """Return the key under which it is stored in memory."""
        return self.finding, self.severity

    @property
    def rule_id(self) -> str:
        """Return the rule that found it."""
        return self.finding[0]

    @property
    def starts_at(self) -> datetime:
        """Return when it began to fire, which is the start that receivers get."""
        return self.active_at if self.fired_at is None else self.fired_at

    def resolved(self, end: AlertEnd, now: datetime) -> Alert:
        """Return the alert in state RESOLVED."""
        return replace(
            self, state=AlertState.RESOLVED, resolved_at=now, end=end, keep_firing_since=None
        )

    def shifted(self, step: timedelta) -> Alert:
        """Return it with all timestamps moved by a step of the clock."""
        return replace(
            self,
            active_at=self.active_at + step,
            fired_at=_move(self.fired_at, step),
            keep_firing_since=_move(self.keep_firing_since, step),
            resolved_at=_move(self.resolved_at, step),
        )


def _move(timestamp: datetime | None, step: timedelta) -> datetime | None:
    return None if timestamp is None else timestamp + step
