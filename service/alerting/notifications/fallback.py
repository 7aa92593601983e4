"""What another receiver is told of a notification that its own has not taken.

A kept body is read back. Alertmanager's forms give all that was said; what Slack and PagerDuty were to
be told is text for people, and comes as one alert that quotes it.
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
QUOTED: Final = "NotificationNotDelivered"  # alertname of what is only quoted
_LONGEST: Final = 2000  # characters of a quotation
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A notification as it was kept for its receiver."""

    receiver: str
    group_key: str
    is_firing: bool
    body: bytes
    created_at: datetime  # aware, UTC


def retold(kept: Kept, *, to: str, external_url: str, now: datetime) -> Notification:
    """Return what the receiver `to` is told instead."""
    alerts, group_labels = _read(kept, now)
    return Notification(
        receiver=to,
        group_key=f"{kept.receiver}/{kept.group_key}",
        group_labels=group_labels,
        reason=f"{LATE if kept.is_firing else ENDED} {kept.receiver}",
        external_url=external_url,
        alerts=alerts,
    )


def _read(kept: Kept, now: datetime) -> tuple[tuple[NotifiedAlert, ...], Mapping[str, str]]:
    try:
        document = json.loads(kept.body)
        if isinstance(document, list):
            pushed = tuple(_alert(one) for one in document)
            return pushed or (_quoted(kept, "", now),), {}
        if "alerts" in document:
            told = tuple(_alert(one) for one in document["alerts"])
            return told, dict(document["groupLabels"])
        return (_quoted(kept, _words(document), now),), {}
    except _UNREADABLE:
        return (_quoted(kept, "", now),), {}


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
    """Return what a message of Slack or an event of PagerDuty says first."""
    payload = document.get("payload")
    said = payload["summary"] if payload else document.get("text", "")
    return str(said)[:_LONGEST]


def _quoted(kept: Kept, words: str, now: datetime) -> NotifiedAlert:
    labels = {"alertname": QUOTED, "receiver": kept.receiver, "severity": "critical"}
    return NotifiedAlert(
        labels=labels,
        annotations={
            "summary": f"Receiver {kept.receiver} has not taken a notification",
            "description": words or f"It was about {kept.group_key}",
        },
        starts_at=kept.created_at,
        ends_at=None if kept.is_firing else now,
        fingerprint=fingerprint(labels),
    )
