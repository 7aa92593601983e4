"""Build the outbox entry of a notification: its content as the receiver reads it, and its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.verdict import RuleMeta
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.annotations import annotations_of, incident_annotations
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.outbox_row import Outgoing
from service.alerting.notifications.channels import outgoing_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.receivers.receivers import Receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationContext:
    """What notifications are built of, besides alerts."""

    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    rules: Mapping[str, RuleMeta] = field(default_factory=dict)
    external_url: str = ""  # where people reach Tidemark; empty if unknown
    runbook_url: str = ""  # below it each rule has a page; empty if there are none

    def outgoing(self, notification: GroupNotification, webhook_id: str) -> Outgoing | None:
        """Return the outbox entry; None if there is no such receiver any more."""
        receiver = self.receivers.get(notification.receiver)
        if receiver is None:
            return None
        alerts = (*notification.firing, *notification.resolved)
        shared = incident_annotations(notification)
        content = Notification(
            receiver=notification.receiver,
            group_key=notification.group_key,
            group_labels=dict(notification.group_labels),
            reason=str(notification.reason),
            external_url=self.external_url,
            alerts=tuple(self._alert(alert, shared) for alert in alerts),
        )
        return outgoing_of(receiver, content, webhook_id=webhook_id, at=notification.at)

    def _alert(self, alert: Alert, shared: Mapping[str, str]) -> NotifiedAlert:
        page = f"{self.external_url}/api/v1/alerts/{alert.fingerprint}"
        return NotifiedAlert(
            labels=alert.labels,
            annotations={
                **annotations_of(alert, self.rules.get(alert.rule_id), self.runbook_url),
                **shared,
            },
            starts_at=alert.starts_at,
            ends_at=alert.resolved_at if alert.state is AlertState.RESOLVED else None,
            fingerprint=alert.fingerprint,
            generator_url=page if self.external_url else "",
        )
