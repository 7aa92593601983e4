"""An event for PagerDuty: a group of alerts is one incident, from its first breach to its end.

The routing key is no part of the stored body, because bodies are shown; it is added when the event is
sent.

Source: PagerDuty's reference of the Events API v2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from service.alerting.alerts.annotations import cut
from service.alerting.notifications.notification import (
    Json,
    Notification,
    NotifiedAlert,
    json_bytes,
    timestamp,
)
from service.alerting.notifications.wording import details, headline, pairs, title
from service.alerting.receivers.receiver_url import Secret

LARGEST: Final = 512 * 1000  # bytes; PagerDuty says 512 KB, and may mean kB
LONGEST_SUMMARY: Final = 1024  # characters
_KEY_LENGTH: Final = 100  # bytes
_MOST_ALERTS: Final = 50  # alerts in an incident's details
_SEVERITIES: Final = ("critical", "error", "warning", "info")  # the worst first
_UNKNOWN_SEVERITY: Final = "error"
_LEFT_OUT: Final = "left out: with it the event would be larger than PagerDuty takes"


def pagerduty_body(notification: Notification) -> bytes:
    """Return the event as it is stored: without its routing key."""
    event = _event(notification, _details(notification))
    if len(event) + _KEY_LENGTH <= LARGEST:
        return event
    return _event(notification, {"details": _LEFT_OUT})


def with_routing_key(body: bytes, key: Secret) -> bytes:
    """Return a stored event as it is sent."""
    return json_bytes({**json.loads(body), "routing_key": key.reveal()})


def dedup_key(group_key: str) -> str:
    """Return the key that joins the events of one group; a group's key itself may be too long."""
    return hashlib.sha256(group_key.encode("utf-8", "surrogatepass")).hexdigest()


def _event(notification: Notification, custom_details: Json) -> bytes:
    event: dict[str, Json] = {"dedup_key": dedup_key(notification.group_key)}
    if not notification.firing:
        return json_bytes({**event, "event_action": "resolve"})
    event |= {
        "event_action": "trigger",
        "client": "Tidemark",
        "payload": {
            "summary": cut(_summary(notification), LONGEST_SUMMARY),
            "source": cut(notification.group_labels.get("cluster") or "Tidemark", LONGEST_SUMMARY),
            "severity": _severity(notification.firing),
            "timestamp": timestamp(min(alert.starts_at for alert in notification.firing)),
            "custom_details": custom_details,
        },
    }
    if notification.external_url:
        event["client_url"] = notification.external_url
    links = _links(notification)
    return json_bytes({**event, "links": links} if links else event)


def _summary(notification: Notification) -> str:
    """Return the title and the headline of the first alert: this is all that a phone reads out."""
    return f"{title(notification)}: {headline(notification.firing[0])}"


def _severity(firing: Sequence[NotifiedAlert]) -> str:
    """Return the worst severity in PagerDuty's words."""
    severities = {alert.labels.get("severity", "") for alert in firing}
    words = {word if word in _SEVERITIES else _UNKNOWN_SEVERITY for word in severities}
    return min(words, key=_SEVERITIES.index)


def _details(notification: Notification) -> dict[str, Json]:
    shown = notification.firing[:_MOST_ALERTS]
    return {
        "firing": [_alert(alert) for alert in shown],
        "num_firing": len(notification.firing),
        "num_resolved": len(notification.resolved),
        "num_left_out": len(notification.firing) - len(shown),
        "reason": notification.reason,
    }


def _alert(alert: NotifiedAlert) -> dict[str, Json]:
    return {
        "what": headline(alert),
        "labels": pairs(alert.labels),
        "since": timestamp(alert.starts_at),
        "evidence": details(alert),
    }


def _links(notification: Notification) -> Sequence[Json]:
    urls = (
        (alert.annotations.get(name, ""), text)
        for name, text in (("runbook_url", "Runbook"), ("panelURL", "Panel"))
        for alert in notification.firing
    )
    return [{"href": url, "text": text} for url, text in dict.fromkeys(urls) if url][:5]
