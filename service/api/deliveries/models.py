"""Answers about receivers and their deliveries; never a secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from service.api.core.models import Model, NextCursor, Stamped
from service.api.core.queries import PageQuery, Word


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
    created_at: datetime
    next_attempt_at: Annotated[datetime | None, Field(description="null: no further attempt")]
    attempts: int
    done_at: datetime | None
    superseded_by: int | None
    replay_of: int | None
    fallback_of: int | None
    dead_reason: str | None


class DeliveryPage(Stamped):
    """Deliveries, newest first."""

    items: list[Delivery]
    next: NextCursor


class Attempt(Model):
    """One attempt to deliver."""

    at: datetime
    took_ms: int
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


class ReceiverPage(Stamped):
    """Receivers by name; an empty list means that nobody is notified."""

    items: list[Receiver]
    next: NextCursor


class Enqueued(Stamped):
    """A delivery that was created on request; /deliveries/{id} shows its progress."""

    delivery: Delivery


class DeliveryQuery(PageQuery):
    """Which deliveries."""

    receiver: Word | None = None
    state: DeliveryState | None = None
