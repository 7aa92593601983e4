"""Alerts as they are pushed to an Alertmanager, the way Prometheus does it.

A firing alert is sent with an end a little ahead, and pushed again before that: if Tidemark dies, the
Alertmanager takes the alert for resolved and does not show it for ever. The end is counted from the
attempt and added right before it. In a body that was built earlier and had to wait, the end might lie
in the past, and would resolve a firing alert.

Source: prometheus/prometheus, notifier and rules/alerting.go; prometheus/alertmanager, api/v2.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Final

from service.alerting.notifications.json_text import Json, json_bytes, timestamp
from service.alerting.notifications.notification import Notification, NotifiedAlert

_MISSED_PUSHES: Final = 4  # Prometheus: so many in a row, and an alert is taken for over


def push_body(notification: Notification) -> bytes:
    """Return the body as it is stored: firing alerts have no end yet."""
    return json_bytes([_alert(alert) for alert in notification.alerts])


def with_ends(body: bytes, *, at: datetime, resend_delay: timedelta) -> bytes:
    """Return a stored body as it is sent at a time: with ends, which follow from `resend_delay`."""
    end = timestamp(at + _MISSED_PUSHES * resend_delay)
    return json_bytes([{"endsAt": end, **load} for load in json.loads(body)])


def _alert(alert: NotifiedAlert) -> dict[str, Json]:
    document: dict[str, Json] = {
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": timestamp(alert.starts_at),
    }
    if alert.generator_url:
        document["generatorURL"] = alert.generator_url  # an empty one is rejected as no URL
    if alert.ends_at is not None:
        document["endsAt"] = timestamp(alert.ends_at)
    return document
