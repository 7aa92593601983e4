"""The channel of each kind of receiver: the body that is stored for it, and the request that is sent.

Two steps, because time passes between them. The body goes to the outbox, is stored, shown and
repeated, and holds no secret. The request has the secrets and the time of its attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from rules.version import VERSION
from service.alerting.notifications.alertmanager_push import push_body, with_ends
from service.alerting.notifications.alertmanager_webhook import webhook_body
from service.alerting.notifications.notification import Notification
from service.alerting.notifications.pagerduty import pagerduty_body, with_routing_key
from service.alerting.notifications.slack import slack_body
from service.alerting.receivers.receivers import (
    AlertmanagerReceiver,
    PagerDutyReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.alerting.receivers.secret import Secret
from service.alerting.receivers.standard_webhooks import sign_headers

_ALWAYS: Final = {"Content-Type": "application/json", "User-Agent": f"Tidemark/{VERSION}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """The HTTP request of one attempt; it prints neither body nor headers, which may hold secrets."""

    body: bytes
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Post({len(self.body)} bytes)"


def body_of(receiver: Receiver, notification: Notification) -> bytes:
    """Return the body to store for a receiver; the same notification has the same bytes."""
    match receiver:
        case WebhookReceiver():
            return webhook_body(notification, receiver.max_alerts)
        case AlertmanagerReceiver():
            return push_body(notification)
        case SlackReceiver():
            return slack_body(notification)
        case PagerDutyReceiver():
            return pagerduty_body(notification)
        case _:
            assert_never(receiver)


def post_of(receiver: Receiver, body: bytes, *, webhook_id: str, at: datetime) -> Post:
    """Return the request that sends a stored body at a time.

    `webhook_id` names the delivery, and is the same on every attempt.
    """
    match receiver:
        case WebhookReceiver():
            signed = sign_headers(webhook_id, body, at=at, secrets=receiver.signing_secrets)
            return _post(body, receiver.authorization, signed)
        case AlertmanagerReceiver():
            sent = with_ends(body, at=at, resend_delay=receiver.resend_delay)
            return _post(sent, receiver.authorization)
        case SlackReceiver():
            return _post(body)
        case PagerDutyReceiver():
            return _post(with_routing_key(body, receiver.routing_key))
        case _:
            assert_never(receiver)


def _post(
    body: bytes, authorization: Secret | None = None, more: Mapping[str, str] | None = None
) -> Post:
    secret = {} if authorization is None else {"Authorization": authorization.reveal()}
    return Post(body=body, headers={**_ALWAYS, **(more or {}), **secret})
