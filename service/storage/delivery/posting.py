"""Puts single messages that no round has made into the outbox."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from service.storage.tables.alerting import OUTBOX


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to one receiver; messages with one `group_hash` are sent in order."""

    receiver: str
    group_key: str
    group_hash: str
    reason: str
    is_firing: bool
    alerts: int  # number of alerts in it
    body: bytes  # as it is stored: `service.alerting.notifications.channels.body_of`
    at: datetime  # aware, UTC
    cluster: int | None = None  # row id; None: of no cluster
    replay_of: int | None = None
    fallback_of: int | None = None


def group_hash(group_key: str, *kind: str) -> str:
    """Return the hash of a group; each `kind` of messages has an order of its own."""
    text = "\0".join((*kind, group_key))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def post(connection: Connection, message: Message) -> int | None:
    """Store a message; return its row id, None if a fallback of the same notification exists."""
    new = insert(OUTBOX).values(
        webhook_id=str(uuid4()),
        cluster=message.cluster,
        receiver=message.receiver,
        group_key=message.group_key,
        group_hash=message.group_hash,
        reason=message.reason,
        is_firing=message.is_firing,
        alerts=message.alerts,
        body=message.body,
        created_at=message.at,
        state="waiting",
        next_attempt_at=message.at,
        replay_of=message.replay_of,
        fallback_of=message.fallback_of,
    )
    inserted = connection.execute(new.on_conflict_do_nothing().returning(OUTBOX.c.id))
    return inserted.scalar_one_or_none()
