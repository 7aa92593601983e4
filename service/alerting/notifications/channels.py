"""The channel of each kind of receiver: the body that is stored for it, and the request that is sent.

Two steps, because time passes between them. The body goes to the outbox, is stored, shown and
repeated, and holds no secret. The request has the secrets and the time of its attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, assert_never

from dashboards.of_rules import alert_links
from rules.verdict import RuleMeta
from rules.version import VERSION
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.annotations import annotations_of, incident_annotations
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.outbox_row import Outgoing, group_hash
from service.alerting.notifications.alertmanager import push_body, webhook_body, with_ends
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.notifications.pagerduty import pagerduty_body, with_routing_key
from service.alerting.notifications.slack import slack_body
from service.alerting.receivers.receivers import (
    AlertmanagerReceiver,
    PagerDutyReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.alerting.receivers.standard_webhooks import sign_headers

_ALWAYS: Final = {"Content-Type": "application/json", "User-Agent": f"Tidemark/{VERSION}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """The HTTP request of one attempt; it prints neither body nor headers, which may hold secrets."""

    body: bytes
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Post({len(self.body)} bytes)"


def body_of(receiver: Receiver, notification: Notification) -> bytes:
    """Return the body to store for a receiver; the same notification has the same bytes."""
    match receiver:
        case WebhookReceiver():
            return webhook_body(notification, receiver.max_alerts)
        case AlertmanagerReceiver():
            return push_body(notification)
        case SlackReceiver():
            return slack_body(notification)
        case PagerDutyReceiver():
            return pagerduty_body(notification)
        case _:
            assert_never(receiver)


def outgoing_of(
    receiver: Receiver, notification: Notification, *kind: str, webhook_id: str, at: datetime
) -> Outgoing:
    """Return a notification as it is put into the outbox; each `kind` has an order of its own."""
    return Outgoing(
        webhook_id=webhook_id,
        receiver=receiver.name,
        group_key=notification.group_key,
        group_hash=group_hash(notification.group_key, *kind),
        reason=notification.reason,
        is_firing=bool(notification.firing),
        alerts=len(notification.alerts),
        body=body_of(receiver, notification),
        created_at=at,
    )


def post_of(receiver: Receiver, body: bytes, *, webhook_id: str, at: datetime) -> Post:
    """Return the request that sends a stored body at a time.

    `webhook_id` names the delivery, and is the same on every attempt.
    """
    headers = dict(_ALWAYS)
    match receiver:
        case WebhookReceiver():
            headers |= sign_headers(webhook_id, body, at=at, secrets=receiver.signing_secrets)
        case AlertmanagerReceiver():
            body = with_ends(body, at=at, resend_delay=receiver.resend_delay)
        case SlackReceiver():
            pass
        case PagerDutyReceiver():
            body = with_routing_key(body, receiver.routing_key)
        case _:
            assert_never(receiver)
    if receiver.authorization is not None:
        headers["Authorization"] = receiver.authorization.reveal()
    return Post(body=body, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationContext:
    """What notifications are built of, besides alerts."""

    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    rules: Mapping[str, RuleMeta] = field(default_factory=dict)
    external_url: str = ""  # where people reach Tidemark; empty if unknown
    runbook_url: str = ""  # below it each rule has a page; empty if there are none
    grafana_url: str = ""  # of a Grafana that has Tidemark's dashboards; empty if there is none

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
                **self._links(alert),
                **shared,
            },
            starts_at=alert.starts_at,
            ends_at=alert.resolved_at if alert.state is AlertState.RESOLVED else None,
            fingerprint=alert.fingerprint,
            generator_url=page if self.external_url else "",
        )

    def _links(self, alert: Alert) -> dict[str, str]:
        since_ms = int(alert.active_at.timestamp() * 1000)
        labels = dict(alert.finding[1])
        return alert_links(self.grafana_url, alert.rule_id, labels, since_ms=since_ms)
