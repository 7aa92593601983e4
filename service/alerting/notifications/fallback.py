"""Build the notification that a fallback receiver gets instead of one that was not delivered in time.

The stored body is read back. Alertmanager's formats give all alerts; the bodies for Slack and PagerDuty
are text for people, and become one alert that quotes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from service.alerting.alerts.identity import fingerprint
from service.alerting.notifications.alertmanager_webhook import NOT_ENDED
from service.alerting.notifications.notification import Notification, NotifiedAlert

LATE: Final = "not delivered in time to"
ENDED: Final = "over, and not delivered in time to"
QUOTED: Final = "NotificationNotDelivered"  # alertname of an alert that quotes a body
_LONGEST: Final = 2000  # characters of a quotation
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeliveredNotification:
    """A notification as it was stored for its receiver."""

    receiver: str
    group_key: str
    is_firing: bool
    body: bytes
    created_at: datetime  # aware, UTC


def build_fallback_notification(
    undelivered: UndeliveredNotification, *, to: str, external_url: str, now: datetime
) -> Notification:
    """Return the notification for the receiver `to`, which names the original receiver."""
    alerts, group_labels = _read(undelivered, now)
    return Notification(
        receiver=to,
        group_key=f"{undelivered.receiver}/{undelivered.group_key}",
        group_labels=group_labels,
        reason=f"{LATE if undelivered.is_firing else ENDED} {undelivered.receiver}",
        external_url=external_url,
        alerts=alerts,
    )


def _read(
    undelivered: UndeliveredNotification, now: datetime
) -> tuple[tuple[NotifiedAlert, ...], Mapping[str, str]]:
    try:
        document = json.loads(undelivered.body)
        if isinstance(document, list):
            pushed = tuple(_alert(row) for row in document)
            return pushed or (_quote(undelivered, "", now),), {}
        if "alerts" in document:
            alerts = tuple(_alert(row) for row in document["alerts"])
            return alerts, dict(document["groupLabels"])
        return (_quote(undelivered, _words(document), now),), {}
    except _UNREADABLE:
        return (_quote(undelivered, "", now),), {}


def _alert(alert: Mapping[str, Any]) -> NotifiedAlert:
    ends = alert.get("endsAt", NOT_ENDED)
    labels = {str(name): str(value) for name, value in alert["labels"].items()}
    return NotifiedAlert(
        labels=labels,
        annotations={str(name): str(value) for name, value in alert["annotations"].items()},
        starts_at=datetime.fromisoformat(alert["startsAt"]),
        ends_at=None if ends == NOT_ENDED else datetime.fromisoformat(ends),
        fingerprint=str(alert.get("fingerprint") or fingerprint(labels)),
        generator_url=str(alert.get("generatorURL", "")),
    )


def _words(document: Mapping[str, Any]) -> str:
    """Return the first text of a Slack message or a PagerDuty event."""
    payload = document.get("payload")
    said = payload["summary"] if payload else document.get("text", "")
    return str(said)[:_LONGEST]


def _quote(undelivered: UndeliveredNotification, words: str, now: datetime) -> NotifiedAlert:
    labels = {"alertname": QUOTED, "receiver": undelivered.receiver, "severity": "critical"}
    return NotifiedAlert(
        labels=labels,
        annotations={
            "summary": f"Receiver {undelivered.receiver} has not taken a notification",
            "description": words or f"It was about {undelivered.group_key}",
        },
        starts_at=undelivered.created_at,
        ends_at=None if undelivered.is_firing else now,
        fingerprint=fingerprint(labels),
    )
