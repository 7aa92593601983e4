"""What the API answers about receivers, and about what is sent to them; never a secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from service.api.core.models import Model, NextCursor, Stamped


class DeliveryState(StrEnum):
    """Where a delivery is."""

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
    reason: Annotated[str, Field(description="Why the receiver is told")]
    is_firing: bool
    alerts: int
    state: DeliveryState
    created_at: datetime
    next_attempt_at: Annotated[
        datetime | None, Field(description="null: there is none, whatever happened")
    ]
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
    reply: Annotated[
        str | None,
        Field(description="How the answer begins; null: only who has scope admin may read it"),
    ]


class DeliveryDetail(Stamped):
    """A delivery with its attempts."""

    delivery: Delivery
    attempts: Annotated[list[Attempt], Field(description="The last 100, oldest first")]
    body: Annotated[
        Any,
        Field(description="What is sent, without its secrets; null: it is not kept any more"),
    ]


class ReceiverState(StrEnum):
    """How the last attempt went."""

    UNUSED = "unused"  # there was none in the time that deliveries are kept
    OK = "ok"
    FAILING = "failing"


class ReceiverFailure(Model):
    """The last attempt that failed."""

    at: datetime
    status: int | None
    failure: str | None
    detail: str


class Receiver(Model):
    """Where notifications go."""

    name: str
    kind: Annotated[str, Field(examples=["webhook", "alertmanager", "slack", "pagerduty"])]
    endpoint: Annotated[str, Field(description="Scheme and host; the path may be a secret")]
    state: ReceiverState
    waiting: Annotated[int, Field(description="Deliveries that wait or are being sent")]
    dead: Annotated[int, Field(description="Given up, in the time that deliveries are kept")]
    oldest_waiting_at: datetime | None
    last_success_at: datetime | None
    last_failure: ReceiverFailure | None
    is_default: bool
    is_fallback: bool


class ReceiverPage(Stamped):
    """Receivers by name; none: nobody is told of anything."""

    items: list[Receiver]
    next: NextCursor


class Enqueued(Stamped):
    """A delivery that was made by hand; ask for it again to see what became of it."""

    delivery: Delivery
