"""Deliveries and receivers as the API shows them; only scheme and host of a receiver's address."""

from __future__ import annotations

import json
from typing import Any

from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.receivers.receivers import (
    AlertmanagerReceiver,
    PagerDutyReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from service.api.core.admin_services import Sending
from service.api.deliveries import models
from service.api.deliveries.models import DeliveryState, ReceiverState
from service.storage.delivery.deliveries import (
    OPEN,
    DeliveryStory,
    ReceiverStats,
    StoredAttempt,
)

KINDS: dict[type[Receiver], str] = {
    WebhookReceiver: "webhook",
    AlertmanagerReceiver: "alertmanager",
    SlackReceiver: "slack",
    PagerDutyReceiver: "pagerduty",
}


def delivery_view(stored: OutboxRow) -> models.Delivery:
    """Return a delivery as the API shows it."""
    names = [name for name in models.Delivery.model_fields if name != "next_attempt_at"]
    fields = {name: getattr(stored, name) for name in names}
    fields["state"] = DeliveryState(stored.state)
    is_open = stored.state in OPEN
    return models.Delivery(**fields, next_attempt_at=stored.next_attempt_at if is_open else None)


def attempt_view(stored: StoredAttempt, *, may_read_reply: bool) -> models.Attempt:
    """Return an attempt; the reply of a receiver may disclose what is inside a network."""
    return models.Attempt(
        at=stored.at,
        took_ms=stored.took_ms,
        outcome=stored.outcome,
        status=stored.status,
        failure=stored.failure,
        detail=stored.detail,
        reply=stored.reply if may_read_reply else None,
    )


def body_view(story: DeliveryStory) -> Any:
    """Return the body of a delivery; None if it is no longer stored or not JSON."""
    try:
        return json.loads(story.delivery.body)
    except ValueError:
        return None


def receiver_view(receiver: Receiver, stats: ReceiverStats, sending: Sending) -> models.Receiver:
    """Return a receiver with the state of sending to it."""
    failed = stats.last_failure
    return models.Receiver(
        name=receiver.name,
        kind=KINDS[type(receiver)],
        endpoint=str(receiver.endpoint),
        state=_state(stats),
        waiting=stats.waiting,
        dead=stats.dead,
        oldest_waiting_at=stats.oldest_waiting_at,
        last_success_at=stats.last_success_at,
        last_failure=None
        if failed is None
        else models.ReceiverFailure(
            at=failed.at, status=failed.status, failure=failed.failure, detail=failed.detail
        ),
        is_default=receiver.name == sending.default,
        is_fallback=receiver.name == sending.fallback,
    )


def _state(stats: ReceiverStats) -> ReceiverState:
    failed, went_well = stats.last_failure, stats.last_success_at
    if failed is None:
        return ReceiverState.UNUSED if went_well is None else ReceiverState.OK
    is_over = went_well is not None and went_well > failed.at
    return ReceiverState.OK if is_over else ReceiverState.FAILING
