"""What goes out: a notification of alerting as its receiver reads it, ready for the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.verdict import RuleMeta
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.annotations import annotations_of, incident_annotations
from service.alerting.alerts.delta import Outgoing
from service.alerting.alerts.flush import Notification
from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import Notification as Told
from service.alerting.notifications.notification import NotifiedAlert
from service.alerting.receivers.receivers import Receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationContext:
    """What notifications are made of, beside alerts."""

    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    rules: Mapping[str, RuleMeta] = field(default_factory=dict)
    external_url: str = ""  # where people find Tidemark; empty for nowhere
    runbook_url: str = ""  # below it lies a page per rule; empty for nowhere

    def outgoing(self, notification: Notification, webhook_id: str) -> Outgoing | None:
        """Return what goes to the outbox; None if there is no such receiver any more."""
        receiver = self.receivers.get(notification.receiver)
        if receiver is None:
            return None
        alerts = (*notification.firing, *notification.resolved)
        shared = incident_annotations(notification)
        told = Told(
            receiver=notification.receiver,
            group_key=notification.group_key,
            group_labels=dict(notification.group_labels),
            reason=str(notification.reason),
            external_url=self.external_url,
            alerts=tuple(self._told(alert, shared) for alert in alerts),
        )
        return Outgoing(
            webhook_id=webhook_id,
            receiver=notification.receiver,
            group_key=notification.group_key,
            reason=notification.reason,
            is_firing=notification.is_firing,
            alerts=len(alerts),
            body=body_of(receiver, told),
            at=notification.at,
        )

    def _told(self, alert: Alert, shared: Mapping[str, str]) -> NotifiedAlert:
        shown = f"{self.external_url}/api/v1/alerts/{alert.fingerprint}"
        return NotifiedAlert(
            labels=alert.labels,
            annotations={
                **annotations_of(alert, self.rules.get(alert.rule_id), self.runbook_url),
                **shared,
            },
            starts_at=alert.starts_at,
            ends_at=alert.resolved_at if alert.state is AlertState.RESOLVED else None,
            fingerprint=alert.fingerprint,
            generator_url=shown if self.external_url else "",
        )
