"""Alertmanager's two formats: the body of its webhook, and alerts as Prometheus pushes them to it.

The webhook is version 4, which most receivers read. Three differences from Alertmanager are intended. If
`max_alerts` cuts, firing alerts come before resolved ones; and `status`, `commonLabels` and
`commonAnnotations` cover all alerts, not only those that are left. `notification_reason` is one of its
newer fields; older versions do not send it.

A firing alert is pushed with an end a little ahead, and pushed again before that: if Tidemark dies, the
Alertmanager takes the alert for resolved and does not show it for ever. The end is counted from the
attempt and added right before it. In a body that was built earlier and had to wait, the end might lie
in the past, and would resolve a firing alert.

Bodies that never arrived are merged into a newer one of the same group, which replaces them. A
notification has all firing alerts of its group, but each resolved alert only once. A resolved alert in a
body that was not delivered is therefore added to the newest body. For channels that show people the
current state of a group (Slack, PagerDuty) the newest body is enough.

Source: prometheus/alertmanager, notify/webhook/webhook.go, template/template.go and api/v2;
prometheus/prometheus, notifier and rules/alerting.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from service.alerting.notifications.notification import (
    Json,
    Notification,
    NotifiedAlert,
    Status,
    common,
    json_bytes,
    timestamp,
)
from service.alerting.receivers.receivers import AlertmanagerReceiver, Receiver, WebhookReceiver

NOT_ENDED: Final = "0001-01-01T00:00:00Z"  # Go's zero time
VERSION: Final = "4"
UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError)  # a stored body
_MISSED_PUSHES: Final = 4  # Prometheus: so many in a row, and an alert is taken for over

_Alert = dict[str, Any]  # as JSON has it


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
            "alerts": [_webhook_alert(alert) for alert in shown],
        }
    )


def _webhook_alert(alert: NotifiedAlert) -> dict[str, Json]:
    return {
        "status": alert.status,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": timestamp(alert.starts_at),
        "endsAt": NOT_ENDED if alert.ends_at is None else timestamp(alert.ends_at),
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }


def push_body(notification: Notification) -> bytes:
    """Return the body as it is stored: firing alerts have no end yet."""
    return json_bytes([_pushed_alert(alert) for alert in notification.alerts])


def with_ends(body: bytes, *, at: datetime, resend_delay: timedelta) -> bytes:
    """Return a stored body as it is sent at a time: with ends, which follow from `resend_delay`."""
    end = timestamp(at + _MISSED_PUSHES * resend_delay)
    return json_bytes([{"endsAt": end, **load} for load in json.loads(body)])


def _pushed_alert(alert: NotifiedAlert) -> dict[str, Json]:
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


class Merged(NamedTuple):
    """A body that holds the alerts of several."""

    body: bytes
    alerts: int  # how many it is about


def merge_bodies(receiver: Receiver, older: Sequence[bytes], newest: bytes) -> Merged | None:
    """Return the newest body with the ends from older ones, which are in order; None if it adds nothing.

    A body that cannot be read, for instance of another kind of receiver, is left unchanged.
    """
    try:
        match receiver:
            case WebhookReceiver():
                return _merge_webhook(older, newest, receiver.max_alerts)
            case AlertmanagerReceiver():
                return _merge_pushes(older, newest)
            case _:
                return None
    except UNREADABLE:
        return None


def _merge_webhook(older: Sequence[bytes], newest: bytes, most: int) -> Merged | None:
    document = json.loads(newest)
    earlier = [alert for body in older for alert in json.loads(body)["alerts"]]
    ends = [alert for alert in earlier if alert["status"] == Status.RESOLVED]
    fingerprints = [str(alert["fingerprint"]) for alert in document["alerts"]]
    missing = _last_of(ends, lambda alert: str(alert["fingerprint"]), fingerprints)
    if not missing:
        return None
    alerts = [*document["alerts"], *missing]
    shown = alerts[:most] if most else alerts
    for name in ("Labels", "Annotations"):
        own = (alert[name.lower()] for alert in missing)
        document[f"common{name}"] = common((document[f"common{name}"], *own))
    document["alerts"] = shown
    document["truncatedAlerts"] += len(alerts) - len(shown)
    return Merged(json_bytes(document), len(shown) + document["truncatedAlerts"])


def _merge_pushes(older: Sequence[bytes], newest: bytes) -> Merged | None:
    alerts = json.loads(newest)
    ends = [alert for body in older for alert in json.loads(body) if "endsAt" in alert]
    missing = _last_of(ends, _label_text, map(_label_text, alerts))
    if not missing:
        return None
    return Merged(json_bytes([*alerts, *missing]), len(alerts) + len(missing))


def _label_text(alert: Mapping[str, Any]) -> str:
    return json.dumps(alert["labels"], sort_keys=True)


def _last_of(
    ends: Iterable[_Alert], key: Callable[[_Alert], str], present: Iterable[str]
) -> list[_Alert]:
    """Return the last end of each alert that is not present in the newest body."""
    last = {key(alert): alert for alert in ends}
    for name in present:
        last.pop(name, None)
    return list(last.values())
