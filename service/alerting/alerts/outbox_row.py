"""A notification in the outbox: as it is put in, and as its row is claimed, sent and shown."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RowState(StrEnum):
    """State of a row of the outbox."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    SUPERSEDED = "superseded"
    DEAD = "dead"


class DeadReason(StrEnum):
    """Why a notification is given up."""

    REJECTED = "rejected"  # the receiver will never accept this body
    GONE = "gone"  # the receiver accepts no more notifications
    TOO_OLD = "too_old"  # retried for a day
    UNSENDABLE = "unsendable"  # its body no longer fits the receiver
    RECEIVER_REMOVED = "receiver_removed"  # from the settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A notification as it is put into the outbox; those with one `group_hash` are sent in order."""

    webhook_id: str  # the same with every attempt
    cluster: int | None = None  # row id; None: of no cluster, or of the round that stores it
    receiver: str
    group_key: str
    group_hash: str
    reason: str
    is_firing: bool
    alerts: int  # how many it is about
    body: bytes  # as it is stored: holds no secret
    created_at: datetime  # aware, UTC; of the oldest that it supersedes: since when its group waits
    replay_of: int | None = None
    fallback_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow(Outgoing):
    """A notification that is stored. Its body is empty if it was removed, or not read."""

    id: int
    enqueued_at: datetime  # aware, UTC; of itself: for how long it can have been tried
    body: bytes = b""
    state: str
    next_attempt_at: datetime  # aware, UTC
    attempts: int = 0
    done_at: datetime | None = None
    superseded_by: int | None = None
    dead_reason: str | None = None


def group_hash(group_key: str, *kind: str) -> str:
    """Return the hash of a group: SHA-256 in hexadecimal; each `kind` of messages has an order of its own."""
    text = "\0".join((*kind, group_key))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
