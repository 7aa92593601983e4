"""Notifications of our own: what a fallback receiver gets, and the Watchdog, which always fires.

A fallback receiver gets its notification instead of one that was not delivered in time, whose stored body
is read back. Alertmanager's formats give all alerts; the bodies for Slack and PagerDuty are text for
people, and become one alert that quotes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from service.alerting.alerts.identity import fingerprint
from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.notifications.alertmanager import NOT_ENDED, UNREADABLE
from service.alerting.notifications.notification import Notification, NotifiedAlert

LATE: Final = "not delivered in time to"
ENDED: Final = "over, and not delivered in time to"
QUOTED: Final = "NotificationNotDelivered"  # alertname of an alert that quotes a body
_LONGEST: Final = 2000  # characters of a quotation
WATCHDOG: Final = "Watchdog"  # the name that services which miss it know


def watchdog_message(
    receiver: str, *, cluster: str, since: datetime, external_url: str
) -> Notification:
    """Return the alert that always fires: a receiver that misses it knows that Tidemark is silent."""
    labels = {"alertname": WATCHDOG, "severity": "info", "cluster": cluster}
    alert = NotifiedAlert(
        labels=labels,
        annotations={
            "summary": "Tidemark watches",
            "description": f"This alert always fires. If it stays away, nobody watches {cluster}.",
        },
        starts_at=since,
        fingerprint=fingerprint(labels),
    )
    return Notification(
        receiver=receiver,
        group_key=f'{{}}:{{alertname="{WATCHDOG}"}}',
        group_labels={"alertname": WATCHDOG},
        reason="watchdog",
        external_url=external_url,
        alerts=(alert,),
    )


def build_fallback_notification(
    undelivered: OutboxRow, *, to: str, external_url: str, now: datetime
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
    undelivered: OutboxRow, now: datetime
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
    except UNREADABLE:
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
    summary = payload["summary"] if payload else document.get("text", "")
    return str(summary)[:_LONGEST]


def _quote(undelivered: OutboxRow, words: str, now: datetime) -> NotifiedAlert:
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
