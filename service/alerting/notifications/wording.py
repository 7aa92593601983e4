"""A group in one line and an alert in a few, for channels that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from service.alerting.alerts.annotations import INCIDENT_SUMMARY
from service.alerting.alerts.identity import ALERTNAME
from service.alerting.notifications.notification import Notification, NotifiedAlert, Status

# Shown in a line of their own, or for machines.
_SAID_ELSEWHERE: Final = frozenset(
    ("summary", "description", "runbook_url", "dashboardURL", "panelURL", INCIDENT_SUMMARY)
)


def title(notification: Notification) -> str:
    """Return the title of a notification, like Alertmanager's: "[FIRING:3] rule cluster=a"."""
    firing = len(notification.firing)
    state = f"FIRING:{firing}" if firing else "RESOLVED"
    incident = notification.common_annotations.get(INCIDENT_SUMMARY)
    if incident is not None:
        cluster = notification.group_labels.get("cluster")
        return f"[{state}] {incident}" + (f" cluster={cluster}" if cluster else "")
    name = notification.common_labels.get(ALERTNAME, "")
    where = pairs({k: v for k, v in notification.group_labels.items() if k != ALERTNAME})
    return " ".join(part for part in (f"[{state}]", name or "several alerts", where) if part)


def headline(alert: NotifiedAlert) -> str:
    """Return what is wrong, for one alert."""
    text = alert.annotations.get("description") or alert.annotations.get("summary")
    return text or alert.labels.get(ALERTNAME, "") or pairs(alert.labels)


def details(alert: NotifiedAlert) -> Mapping[str, str]:
    """Return the annotations that are evidence."""
    return {k: v for k, v in alert.annotations.items() if k not in _SAID_ELSEWHERE}


def pairs(labels: Mapping[str, str]) -> str:
    """Return labels in a line."""
    return ", ".join(f"{name}={labels[name]}" for name in sorted(labels))


def word_of(alert: NotifiedAlert) -> str:
    """Return the status of an alert as a word."""
    return "Firing" if alert.status is Status.FIRING else "Resolved"
