"""Alerts as they are pushed to an Alertmanager, the way Prometheus does it.

An alert that goes on is given an end a little ahead, and pushed again before that: if Tidemark dies,
the Alertmanager takes the alert for over instead of keeping it for ever. The end is counted from the
attempt and put in at the last time. In a body that was made earlier and had to wait, it might lie
in the past, and would end the alert it tells of.

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
    """Return the body as it is kept: what goes on has no end yet."""
    return json_bytes([_alert(alert) for alert in notification.alerts])


def with_ends(body: bytes, *, at: datetime, resend_delay: timedelta) -> bytes:
    """Return a kept body as it is sent at a time, by one who sends as often as that."""
    end = timestamp(at + _MISSED_PUSHES * resend_delay)
    return json_bytes([{"endsAt": end, **load} for load in json.loads(body)])


def _alert(alert: NotifiedAlert) -> dict[str, Json]:
    told: dict[str, Json] = {
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": timestamp(alert.starts_at),
    }
    if alert.generator_url:
        told["generatorURL"] = alert.generator_url  # an empty one is rejected as no URL
    if alert.ends_at is not None:
        told["endsAt"] = timestamp(alert.ends_at)
    return told
