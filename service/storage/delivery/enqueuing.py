"""Puts the notifications of a round into the outbox, in the transaction of that round."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

from service.alerting.alerts.delta import Outgoing
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
    "at": "timestamptz",
}
# A round that is stored again has its notifications in the outbox already, sent or not.
_ENQUEUE: Final = text(
    "INSERT INTO outbox (webhook_id, cluster, receiver, group_key, group_hash, reason, "  # noqa: S608 - our own names
    "is_firing, alerts, body, created_at, state, next_attempt_at) "
    "SELECT r.webhook_id, :cluster, r.receiver, r.group_key, r.group_hash, r.reason, "
    "r.is_firing, r.alerts, decode(r.body, 'base64'), r.at, 'waiting', r.at "
    f"FROM {rows_from('rows', _ROW)} ORDER BY r.place ON CONFLICT (webhook_id) DO NOTHING"
)


def hash_of(group_key: str) -> str:
    """Return the hash of a group's key in its rows: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(group_key.encode("utf-8", "surrogatepass")).hexdigest()


def enqueue(connection: Connection, cluster: int, outgoing: Sequence[Outgoing]) -> None:
    """Put notifications into the outbox, in their order, which is that of their row ids."""
    if outgoing:
        rows = lines_of(map(_row, outgoing))
        connection.execute(_ENQUEUE, {"cluster": cluster, "rows": rows})


def _row(notification: Outgoing) -> Sequence[str]:
    return (
        notification.webhook_id,
        plain(notification.receiver),
        plain(notification.group_key),
        hash_of(notification.group_key),
        plain(notification.reason.value),
        "true" if notification.is_firing else "false",
        str(notification.alerts),
        base64.b64encode(notification.body).decode(),
        notification.at.isoformat(),
    )
