"""Notifications and receivers for tests, and the bodies that are committed."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from service.alerting.alerts.identity import fingerprint
from service.alerting.notifications.channels import body_of, post_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.receivers.receiver_url import ReceiverUrl, Secret
from service.alerting.receivers.receivers import (
    AlertmanagerReceiver,
    PagerDutyReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.alerting.receivers.standard_webhooks import SigningSecret
from tests.factories import at

GOLDEN: Final = Path(__file__).parent / "golden"
KEY_TEXT: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_KEY_TEXT: Final = "whsec_" + base64.b64encode(bytes(range(32))).decode()
ROUTING_KEY: Final = "0123456789abcdef0123456789ABCDEF"
WEBHOOK_ID: Final = "0190a3c2-0000-7000-8000-000000000001"


def alert(partition: int = 0, *, ended: float | None = None, **overrides: Any) -> NotifiedAlert:
    """Return an alert of a partition that fires since noon, or has ended so many seconds later."""
    labels = {
        "alertname": "hanging_transaction",
        "cluster": "default",
        "partition": str(partition),
        "severity": "critical",
        "topic": "orders",
    }
    base = NotifiedAlert(
        labels=labels,
        annotations={
            "summary": "A transaction hangs.",
            "description": f"Unknown to the coordinator: topic orders, partition {partition}.",
            "reason": "unknown_to_coordinator",
            "open_span": "12",
        },
        starts_at=at(0),
        ends_at=None if ended is None else at(ended),
        fingerprint=fingerprint(labels),
        generator_url="https://tidemark.example.org/alerts",
    )
    return replace(base, **overrides)


def notification(*alerts: NotifiedAlert, **overrides: Any) -> Notification:
    """Return what is told of two partitions, or of these alerts."""
    base = Notification(
        receiver="team",
        group_key='{}:{alertname="hanging_transaction", cluster="default"}',
        group_labels={"alertname": "hanging_transaction", "cluster": "default"},
        reason="first notification",
        external_url="https://tidemark.example.org",
        alerts=alerts or (alert(0), alert(1)),
    )
    return replace(base, **overrides)


def webhook(**overrides: Any) -> WebhookReceiver:
    """Return a signed webhook."""
    base = WebhookReceiver(
        name="team",
        url=ReceiverUrl("https://hooks.example.org/path-secret?key=query-secret"),
        signing_secrets=(SigningSecret(KEY_TEXT),),
    )
    return replace(base, **overrides)


def slack() -> SlackReceiver:
    """Return a channel."""
    return SlackReceiver(
        name="channel", url=ReceiverUrl("https://hooks.slack.example.org/services/T0AA/B0BB/XyZzY")
    )


def pagerduty() -> PagerDutyReceiver:
    """Return a service."""
    return PagerDutyReceiver(name="pager", routing_key=Secret(ROUTING_KEY))


def alertmanager() -> AlertmanagerReceiver:
    """Return an Alertmanager behind a route prefix."""
    return AlertmanagerReceiver(name="am", url=ReceiverUrl("https://am.example.org/prefix/"))


EVERY: Final[dict[str, Receiver]] = {
    "webhook": webhook(),
    "slack": slack(),
    "pagerduty": pagerduty(),
    "alertmanager": alertmanager(),
}


def told() -> dict[str, Notification]:
    """Return the notifications whose bodies are committed, by name."""
    odd = alert(
        2,
        annotations={"description": "<!channel> & “odd” \ud800 *name*", "reason": "x\ny"},
        generator_url="",
    )
    return {
        "firing": notification(),
        "mixed": notification(alert(0, ended=61.5), alert(1), odd, reason="some alerts resolved"),
        "resolved": notification(alert(0, ended=60), reason="all alerts resolved"),
    }


def pages() -> dict[Path, str]:
    """Return what is sent for every notification and channel, each with its file."""
    return {
        GOLDEN / f"{kind}-{name}.json": _readable(receiver, one)
        for name, one in told().items()
        for kind, receiver in EVERY.items()
    }


def _readable(receiver: Receiver, one: Notification) -> str:
    sent = post_of(receiver, body_of(receiver, one), webhook_id=WEBHOOK_ID, at=at(120))
    document = json.loads(sent.body)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_notification_pages() -> None:
    """Write the committed bodies."""
    GOLDEN.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
