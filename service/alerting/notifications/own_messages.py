"""Notifications about Tidemark itself: a test of a receiver, and the watchdog that always fires."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from service.alerting.alerts.identity import fingerprint
from service.alerting.notifications.notification import Notification, NotifiedAlert

TEST: Final = "TidemarkTest"
WATCHDOG: Final = "Watchdog"  # the name that services which miss it know


def trial_message(receiver: str, *, by: str, external_url: str, at: datetime) -> Notification:
    """Return a message that a person sends to test a receiver; it is resolved from the start."""
    said = {
        "summary": "A test of Tidemark's notifications",
        "description": f"{by} tries whether {receiver} can be reached. Nothing is wrong.",
    }
    labels = {"alertname": TEST, "severity": "info", "receiver": receiver}
    timestamp = at - timedelta(seconds=1), at
    return _message(receiver, labels, said, timestamp, reason="test", external_url=external_url)


def watchdog_message(
    receiver: str, *, cluster: str, since: datetime, external_url: str
) -> Notification:
    """Return the alert that always fires: a receiver that misses it knows that Tidemark is silent."""
    said = {
        "summary": "Tidemark watches",
        "description": f"This alert always fires. If it stays away, nobody watches {cluster}.",
    }
    labels = {"alertname": WATCHDOG, "severity": "info", "cluster": cluster}
    timestamp = since, None
    return _message(receiver, labels, said, timestamp, reason="watchdog", external_url=external_url)


def _message(  # noqa: PLR0913 - the parts of a message, each by its name
    receiver: str,
    labels: dict[str, str],
    said: dict[str, str],
    timestamp: tuple[datetime, datetime | None],
    *,
    reason: str,
    external_url: str,
) -> Notification:
    name = labels["alertname"]
    return Notification(
        receiver=receiver,
        group_key=f'{{}}:{{alertname="{name}"}}',
        group_labels={"alertname": name},
        reason=reason,
        external_url=external_url,
        alerts=(
            NotifiedAlert(
                labels=labels,
                annotations=said,
                starts_at=timestamp[0],
                ends_at=timestamp[1],
                fingerprint=fingerprint(labels),
            ),
        ),
    )
