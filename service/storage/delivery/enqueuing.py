"""Puts notifications into the outbox: those of a round in its transaction, others by themselves.

Those that a user creates, a test of a receiver and the replay of one that was given up, pass through the
outbox like all others, in the order of their group.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from sqlalchemy import Connection, Select, func, select, text

from service.alerting.alerts.outbox_row import OutboxRow, Outgoing, group_hash
from service.storage.database.bulk import lines_of, plain, rows_from
from service.storage.delivery.deliveries import DELIVERED, OPEN, is_of, require_cluster, row_of
from service.storage.tables.alerting import OUTBOX

_ROW: Final = {
    "webhook_id": "text",
    "receiver": "text",
    "group_key": "text",
    "group_hash": "text",
    "reason": "text",
    "is_firing": "boolean",
    "alerts": "integer",
    "body": "text",
    "created_at": "timestamptz",
    "cluster": "bigint",
    "replay_of": "bigint",
    "fallback_of": "bigint",
}
# A round that is stored again has its notifications in the outbox already, sent or not; and the
# fallback receiver is notified of a notification once.
_ENQUEUE: Final = text(
    "INSERT INTO outbox (webhook_id, receiver, group_key, group_hash, reason, is_firing, alerts, "  # noqa: S608 - our own names
    "body, created_at, enqueued_at, cluster, replay_of, fallback_of, state, next_attempt_at) "
    "SELECT r.webhook_id, r.receiver, r.group_key, r.group_hash, r.reason, r.is_firing, r.alerts, "
    "decode(r.body, 'base64'), r.created_at, :now, coalesce(r.cluster, CAST(:cluster AS bigint)), "
    "r.replay_of, r.fallback_of, 'waiting', r.created_at "
    f"FROM {rows_from('rows', _ROW)} ORDER BY r.place ON CONFLICT DO NOTHING RETURNING id"
)


def post(
    connection: Connection, outgoing: Sequence[Outgoing], cluster: int | None, now: datetime
) -> list[int]:
    """Put notifications into the outbox, in their order, which is that of their row ids.

    Return the row ids of those that are not there already.

    Args:
        connection: in a transaction.
        outgoing: the notifications.
        cluster: row id, for those that name none.
        now: aware, UTC. A notification may have waited for the database, and is tried from now on.
    """
    if not outgoing:
        return []
    parameters = {"cluster": cluster, "now": now, "rows": lines_of(map(_row, outgoing))}
    return list(connection.execute(_ENQUEUE, parameters).scalars())


def _row(notification: Outgoing) -> Sequence[str | None]:
    return (
        notification.webhook_id,
        plain(notification.receiver),
        plain(notification.group_key),
        notification.group_hash,
        plain(notification.reason),
        "true" if notification.is_firing else "false",
        str(notification.alerts),
        base64.b64encode(notification.body).decode(),
        notification.created_at.isoformat(),
        _number(notification.cluster),
        _number(notification.replay_of),
        _number(notification.fallback_of),
    )


def _number(row: int | None) -> str | None:
    return None if row is None else str(row)


class ByHand:
    """Creates deliveries of the clusters of one name in one transaction."""

    def __init__(self, connection: Connection, name: str, now: datetime) -> None:
        self._connection = connection
        self._name = name
        self._now = now

    def take(self, delivery: int) -> OutboxRow | None:
        """Return a delivery and lock it until the transaction ends; None if there is none."""
        is_it = (OUTBOX.c.id == delivery, is_of(self._name))
        return self._row(select(OUTBOX).where(*is_it).with_for_update())

    def newer(self, taken: OutboxRow) -> OutboxRow | None:
        """Return a delivered or open notification of the group that is not older, None if there is none."""
        of_group = (
            OUTBOX.c.receiver == taken.receiver,
            OUTBOX.c.group_hash == taken.group_hash,
            OUTBOX.c.cluster == taken.cluster,
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
        """Create the delivery of a test message; StoreError before the first round is stored."""
        return self._add(
            Outgoing(
                webhook_id=_new_id(),
                cluster=require_cluster(self._connection, self._name),
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
        (new,) = post(self._connection, [outgoing], None, self._now)
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
