"""Notifications that a user creates: a test of a receiver, and the replay of one that was given up.

They pass through the outbox like all others, in the order of their group.
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
    """A locked delivery that is to be replayed."""

    delivery: StoredDelivery
    row: RowMapping

    @property
    def origin(self) -> int:
        """Return the delivery that its body was made for."""
        return self.delivery.replay_of or self.delivery.id

    @property
    def has_body(self) -> bool:
        """Whether its body is still stored."""
        return bool(self.row["body"])


class ByHand:
    """Creates deliveries in one transaction."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self._connection = connection
        self._now = now

    def take(self, delivery: int) -> GivenUp | None:
        """Return a delivery and lock it until the transaction ends; None if there is none."""
        query = select(OUTBOX).where(OUTBOX.c.id == delivery).with_for_update()
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else GivenUp(delivery=delivery_of(row), row=row)

    def newer(self, taken: GivenUp) -> StoredDelivery | None:
        """Return a delivered or open notification of the group that is not older, None if there is none."""
        row = taken.row
        of_group = (
            OUTBOX.c.receiver == row["receiver"],
            OUTBOX.c.group_hash == row["group_hash"],
            OUTBOX.c.cluster.is_not_distinct_from(row["cluster"]),
            func.coalesce(OUTBOX.c.replay_of, OUTBOX.c.id) >= taken.origin,
            OUTBOX.c.state.in_((DELIVERED, *OPEN)),
        )
        query = select(OUTBOX).where(*of_group).order_by(OUTBOX.c.id.desc()).limit(1)
        newest = self._connection.execute(query).mappings().one_or_none()
        return None if newest is None else delivery_of(newest)

    def replay(self, taken: GivenUp) -> StoredDelivery:
        """Create a delivery with the same body; it has an id and attempts of its own."""
        copied = ("cluster", "receiver", "group_key", "group_hash", "is_firing", "alerts", "body")
        values = {name: taken.row[name] for name in (*copied, "reason")}
        return self._add(**values, replay_of=taken.origin)

    def add_test(self, receiver: str, group_key: str, body: bytes) -> StoredDelivery:
        """Create the delivery of a test message."""
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

    def _add(self, **values: Any) -> StoredDelivery:
        new = insert(OUTBOX).values(
            webhook_id=f"msg_{uuid4().hex}",
            created_at=self._now,
            state="waiting",
            next_attempt_at=self._now,
            **values,
        )
        row = self._connection.execute(new.returning(OUTBOX)).mappings().one()
        return delivery_of(row)
