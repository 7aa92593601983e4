"""Deliveries and receivers as the API shows them: never a secret, and of an address only scheme and host."""

from __future__ import annotations

import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.receivers import receivers
from service.api.core.admin_services import Sending
from service.api.core.models import Paged, Stamped
from service.api.core.queries import PageQuery, Word
from service.storage.delivery.deliveries import (
    OPEN,
    DeliveryStory,
    ReceiverHealth,
    StoredAttempt,
)
from service.views.model import Model


class DeliveryState(StrEnum):
    """State of a delivery."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    SUPERSEDED = "superseded"  # a newer one of its group was sent instead
    DEAD = "dead"  # given up; a person may replay it


class Delivery(Model):
    """One notification on its way to one receiver."""

    id: int
    webhook_id: Annotated[str, Field(description="The same on every attempt")]
    receiver: str
    group_key: str
    reason: Annotated[str, Field(description="Why the receiver is notified")]
    is_firing: bool
    alerts: int
    state: DeliveryState
    created_at: Annotated[datetime, Field(description="Of the oldest that it supersedes")]
    enqueued_at: Annotated[
        datetime, Field(description="Of itself: it is tried for a day from then")
    ]
    next_attempt_at: Annotated[datetime | None, Field(description="null: no further attempt")]
    attempts: int
    done_at: datetime | None
    superseded_by: int | None
    replay_of: int | None
    fallback_of: int | None
    dead_reason: str | None


class DeliveryPage(Paged[Delivery]):
    """Deliveries, newest first."""


class Attempt(Model):
    """One attempt to deliver."""

    at: datetime
    took_ms: Annotated[int | None, Field(description="null: nothing could be sent")]
    outcome: str
    status: Annotated[int | None, Field(description="Of HTTP; null: there was no answer")]
    failure: str | None
    detail: str
    reply: str | None
    """Beginning of the answer; null unless the caller has scope admin"""


class DeliveryDetail(Stamped):
    """A delivery with its attempts."""

    delivery: Delivery
    attempts: Annotated[list[Attempt], Field(description="The last 100, oldest first")]
    body: Any
    """The notification without its secrets; null: no longer stored"""


class ReceiverState(StrEnum):
    """Outcome of the last attempt to a receiver."""

    UNUSED = "unused"  # no attempt within the retention of deliveries
    OK = "ok"
    FAILING = "failing"


class ReceiverFailure(Model):
    """The last attempt that failed."""

    at: datetime
    status: int | None
    failure: str | None
    detail: str


class Receiver(Model):
    """A receiver of notifications."""

    name: str
    kind: Annotated[str, Field(examples=["webhook", "alertmanager", "slack", "pagerduty"])]
    endpoint: Annotated[str, Field(description="Scheme and host; the path may be a secret")]
    state: ReceiverState
    waiting: Annotated[int, Field(description="Deliveries that are waiting or being sent")]
    dead: Annotated[int, Field(description="Given up, within the retention of deliveries")]
    oldest_waiting_at: datetime | None
    last_success_at: datetime | None
    last_failure: ReceiverFailure | None
    is_default: bool
    is_fallback: bool


class ReceiverPage(Paged[Receiver]):
    """Receivers by name; an empty list means that nobody is notified."""


class Enqueued(Stamped):
    """A delivery that was created on request; /deliveries/{id} shows its progress."""

    delivery: Delivery


class DeliveryQuery(PageQuery):
    """Which deliveries."""

    receiver: Word | None = None
    state: DeliveryState | None = None


KINDS: dict[type[receivers.Receiver], str] = {
    receivers.WebhookReceiver: "webhook",
    receivers.AlertmanagerReceiver: "alertmanager",
    receivers.SlackReceiver: "slack",
    receivers.PagerDutyReceiver: "pagerduty",
}


def delivery_view(stored: OutboxRow) -> Delivery:
    """Return a delivery as the API shows it; one that is done has no further attempt."""
    delivery = Delivery.model_validate(stored)
    return (
        delivery if stored.state in OPEN else delivery.model_copy(update={"next_attempt_at": None})
    )


def attempt_view(stored: StoredAttempt, *, may_read_reply: bool) -> Attempt:
    """Return an attempt; the reply of a receiver may disclose what is inside a network."""
    attempt = Attempt.model_validate(stored)
    return attempt if may_read_reply else attempt.model_copy(update={"reply": None})


def body_view(story: DeliveryStory) -> Any:
    """Return the body of a delivery; None if it is no longer stored or not JSON."""
    try:
        return json.loads(story.delivery.body)
    except ValueError:
        return None


def receiver_view(
    receiver: receivers.Receiver, stats: ReceiverHealth, sending: Sending
) -> Receiver:
    """Return a receiver with the state of sending to it."""
    failed = stats.last_failure
    return Receiver(
        name=receiver.name,
        kind=KINDS[type(receiver)],
        endpoint=str(receiver.endpoint),
        state=_state(stats),
        waiting=stats.waiting,
        dead=stats.dead,
        oldest_waiting_at=stats.oldest_waiting_at,
        last_success_at=stats.last_success_at,
        last_failure=None if failed is None else ReceiverFailure.model_validate(failed),
        is_default=receiver.name == sending.default,
        is_fallback=receiver.name == sending.fallback,
    )


def _state(stats: ReceiverHealth) -> ReceiverState:
    failed, went_well = stats.last_failure, stats.last_success_at
    if failed is None:
        return ReceiverState.UNUSED if went_well is None else ReceiverState.OK
    is_over = went_well is not None and went_well > failed.at
    return ReceiverState.OK if is_over else ReceiverState.FAILING
