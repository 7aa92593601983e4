"""Notifications that a person makes: a test of a receiver, and one that was given up, once more.

They go the way of all others, in the order of their group.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping, func, insert, select

from service.storage.delivery.deliveries import DELIVERED, OPEN, StoredDelivery, delivery_of
from service.storage.tables.alerting import OUTBOX


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A delivery that is taken to be replayed."""

    delivery: StoredDelivery
    row: RowMapping

    @property
    def origin(self) -> int:
        """Return the delivery whose body it is: what is replayed tells what was known then."""
        return self.delivery.replay_of or self.delivery.id

    @property
    def has_body(self) -> bool:
        """Whether what was to be told is still kept."""
        return bool(self.row["body"])


class ByHand:
    """Makes deliveries in one transaction."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self._connection = connection
        self._now = now

    def take(self, delivery: int) -> GivenUp | None:
        """Return a delivery and hold it until the transaction ends; None if there is none."""
        query = select(OUTBOX).where(OUTBOX.c.id == delivery).with_for_update()
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else GivenUp(delivery=delivery_of(row), row=row)

    def newer(self, taken: GivenUp) -> StoredDelivery | None:
        """Return what tells as much or more of the same group, or is about to; None if nothing does."""
        row = taken.row
        of_group = (
            OUTBOX.c.receiver == row["receiver"],
            OUTBOX.c.group_hash == row["group_hash"],
            OUTBOX.c.cluster.is_not_distinct_from(row["cluster"]),
            func.coalesce(OUTBOX.c.replay_of, OUTBOX.c.id) >= taken.origin,
            OUTBOX.c.state.in_((DELIVERED, *OPEN)),
        )
        query = select(OUTBOX).where(*of_group).order_by(OUTBOX.c.id.desc()).limit(1)
        found = self._connection.execute(query).mappings().one_or_none()
        return None if found is None else delivery_of(found)

    def replay(self, taken: GivenUp) -> StoredDelivery:
        """Make a delivery of the same body; it has a name and attempts of its own."""
        kept = ("cluster", "receiver", "group_key", "group_hash", "is_firing", "alerts", "body")
        given = {name: taken.row[name] for name in (*kept, "reason")}
        return self._add(**given, replay_of=taken.origin)

    def add_test(self, receiver: str, group_key: str, body: bytes) -> StoredDelivery:
        """Make the delivery of a test message."""
        return self._add(
            cluster=None,
            receiver=receiver,
            group_key=group_key,
            group_hash=hashlib.sha256(group_key.encode()).hexdigest(),
            reason="test",
            is_firing=True,
            alerts=1,
            body=body,
        )

    def _add(self, **given: Any) -> StoredDelivery:
        new = insert(OUTBOX).values(
            webhook_id=f"msg_{uuid4().hex}",
            created_at=self._now,
            state="waiting",
            next_attempt_at=self._now,
            **given,
        )
        row = self._connection.execute(new.returning(OUTBOX)).mappings().one()
        return delivery_of(row)
