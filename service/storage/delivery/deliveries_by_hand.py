"""Notifications that a user creates: a test of a receiver, and the replay of one that was given up.

They pass through the outbox like all others, in the order of their group.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection, Select, func, select

from service.alerting.alerts.outbox_row import OutboxRow, Outgoing, group_hash
from service.storage.delivery.deliveries import DELIVERED, OPEN, row_of
from service.storage.delivery.enqueuing import post
from service.storage.tables.alerting import OUTBOX


class ByHand:
    """Creates deliveries in one transaction."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self._connection = connection
        self._now = now

    def take(self, delivery: int) -> OutboxRow | None:
        """Return a delivery and lock it until the transaction ends; None if there is none."""
        return self._row(select(OUTBOX).where(OUTBOX.c.id == delivery).with_for_update())

    def newer(self, taken: OutboxRow) -> OutboxRow | None:
        """Return a delivered or open notification of the group that is not older, None if there is none."""
        of_group = (
            OUTBOX.c.receiver == taken.receiver,
            OUTBOX.c.group_hash == taken.group_hash,
            OUTBOX.c.cluster.is_not_distinct_from(taken.cluster),
            func.coalesce(OUTBOX.c.replay_of, OUTBOX.c.id) >= _origin(taken),
            OUTBOX.c.state.in_((DELIVERED, *OPEN)),
        )
        return self._row(select(OUTBOX).where(*of_group).order_by(OUTBOX.c.id.desc()).limit(1))

    def replay(self, taken: OutboxRow) -> OutboxRow:
        """Create a delivery with the same body; it has an id and attempts of its own."""
        return self._add(
            replace(
                taken,
                webhook_id=_new_id(),
                created_at=self._now,
                replay_of=_origin(taken),
                fallback_of=None,
            )
        )

    def add_test(self, receiver: str, group_key: str, body: bytes) -> OutboxRow:
        """Create the delivery of a test message."""
        return self._add(
            Outgoing(
                webhook_id=_new_id(),
                receiver=receiver,
                group_key=group_key,
                group_hash=group_hash(group_key),
                reason="test",
                is_firing=True,
                alerts=1,
                body=body,
                created_at=self._now,
            )
        )

    def _add(self, outgoing: Outgoing) -> OutboxRow:
        (new,) = post(self._connection, [outgoing])
        row = self._connection.execute(select(OUTBOX).where(OUTBOX.c.id == new)).mappings().one()
        return row_of(OutboxRow, row)

    def _row(self, query: Select[tuple[object, ...]]) -> OutboxRow | None:
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else row_of(OutboxRow, row)


def _origin(taken: OutboxRow) -> int:
    """Return the delivery that its body was made for."""
    return taken.replay_of or taken.id


def _new_id() -> str:
    return f"msg_{uuid4().hex}"
