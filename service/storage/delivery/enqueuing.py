"""Puts notifications into the outbox: those of a round in its transaction, others by themselves."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

from service.alerting.alerts.outbox_row import Outgoing
from service.storage.database.bulk import lines_of, plain, rows_from

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
    "body, created_at, cluster, replay_of, fallback_of, state, next_attempt_at) "
    "SELECT r.webhook_id, r.receiver, r.group_key, r.group_hash, r.reason, r.is_firing, r.alerts, "
    "decode(r.body, 'base64'), r.created_at, coalesce(r.cluster, CAST(:cluster AS bigint)), "
    "r.replay_of, r.fallback_of, 'waiting', r.created_at "
    f"FROM {rows_from('rows', _ROW)} ORDER BY r.place ON CONFLICT DO NOTHING RETURNING id"
)


def enqueue(connection: Connection, cluster: int | None, outgoing: Sequence[Outgoing]) -> None:
    """Put notifications of a cluster into the outbox, in their order, which is that of their row ids."""
    post(connection, outgoing, cluster)


def post(
    connection: Connection, outgoing: Sequence[Outgoing], cluster: int | None = None
) -> list[int]:
    """Put notifications into the outbox; return the row ids of those that are not there already."""
    if not outgoing:
        return []
    parameters = {"cluster": cluster, "rows": lines_of(map(_row, outgoing))}
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
