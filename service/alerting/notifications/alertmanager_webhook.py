"""The body of Alertmanager's webhook, version 4, which most receivers read.

Three differences from Alertmanager are intended. If `max_alerts` cuts, firing alerts come before
resolved ones; and `status`, `commonLabels` and `commonAnnotations` cover all alerts, not only those
that are left. `notification_reason` is one of its newer fields; older versions do not send it.

Source: prometheus/alertmanager, notify/webhook/webhook.go and template/template.go.
"""

from __future__ import annotations

from typing import Final

from service.alerting.notifications.json_text import Json, json_bytes, timestamp
from service.alerting.notifications.notification import Notification, NotifiedAlert

NOT_ENDED: Final = "0001-01-01T00:00:00Z"  # Go's zero time
VERSION: Final = "4"


def webhook_body(notification: Notification, max_alerts: int = 0) -> bytes:
    """Return the body; `max_alerts` is the most alerts in it, 0 for all."""
    alerts = notification.most_urgent_first
    shown = alerts[:max_alerts] if max_alerts else alerts
    return json_bytes(
        {
            "version": VERSION,
            "groupKey": notification.group_key,
            "truncatedAlerts": len(alerts) - len(shown),
            "status": notification.status,
            "receiver": notification.receiver,
            "groupLabels": notification.group_labels,
            "commonLabels": notification.common_labels,
            "commonAnnotations": notification.common_annotations,
            "externalURL": notification.external_url,
            "notification_reason": notification.reason,
            "alerts": [_alert(alert) for alert in shown],
        }
    )


def _alert(alert: NotifiedAlert) -> dict[str, Json]:
    return {
        "status": alert.status,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": timestamp(alert.starts_at),
        "endsAt": NOT_ENDED if alert.ends_at is None else timestamp(alert.ends_at),
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }
