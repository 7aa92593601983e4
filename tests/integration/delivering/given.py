"""Rows of the outbox for tests, and what has become of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Engine, text

from service.alerting.alerts.outbox_row import OutboxRow, Outgoing, RowState, group_hash
from service.storage.delivery.delivered import Deliveries, Done
from service.storage.delivery.enqueuing import post
from service.storage.delivery.fallback import Backlogs
from service.storage.delivery.outbox import Claims, Outbox, SendCapacity
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from tests.factories import CLUSTER_ID, at

NAME: Final = "default"
PAGER: Final = "pager"


def message(group: str = "g", body: str = "x", **overrides: Any) -> Outgoing:
    """Return a message of a group, made at noon."""
    told = {
        "receiver": PAGER,
        "group_key": group,
        "group_hash": group_hash(group),
        "reason": "first notification",
        "is_firing": True,
        "alerts": 1,
        "body": body.encode(),
        "created_at": at(0),
        "webhook_id": str(uuid4()),
    }
    return Outgoing(**{**told, **overrides})


def no_merge(_older: Sequence[bytes], _newest: bytes) -> None:
    """Take the newest body as it is."""


@dataclass(slots=True)
class Office:
    """One deliverer's way to an outbox."""

    engine: Engine
    cluster: int  # row id of its own, for messages that name none
    outbox: Outbox
    deliveries: Deliveries
    backlogs: Backlogs

    @classmethod
    def of(cls, engine: Engine, name: str = NAME) -> Office:
        owner = uuid4()

        def given() -> Engine:
            return engine

        return cls(
            engine,
            clusters.register(engine, ClusterKey(name, CLUSTER_ID), at(0)),
            Outbox(given, name, owner),
            Deliveries(given, name, owner),
            Backlogs(given, name),
        )

    def post(self, *messages: Outgoing) -> list[int]:
        """Store messages, each when it was made; return their ids."""
        with self.engine.begin() as connection:
            return [
                row
                for one in messages
                for row in post(connection, [one], self.cluster, one.created_at)
            ]

    def claim(
        self,
        seconds: float = 0,
        *,
        free: int = 10,
        receiver: str = PAGER,
        merge: Callable[..., Any] = no_merge,
        busy: Sequence[int] = (),
    ) -> tuple[OutboxRow, ...]:
        """Claim at so many seconds after noon."""
        return self.observe(seconds, free=free, receiver=receiver, merge=merge, busy=busy).claimed

    def observe(
        self,
        seconds: float,
        *,
        free: int = 10,
        receiver: str = PAGER,
        merge: Callable[..., Any] = no_merge,
        busy: Sequence[int] = (),
    ) -> Claims:
        """Claim, and return what else was found."""
        room = SendCapacity(receiver=receiver, free=free, merge=merge)
        return self.outbox.claim([room], at(seconds), busy)

    def complete(
        self, claimed: OutboxRow, seconds: float, state: RowState, again: float | None = None
    ) -> None:
        """Store an attempt that was made at a time."""
        self.deliveries.complete([done(claimed.id, at(seconds), state, again)], at(seconds))

    def rows(self, columns: str = "id, state") -> list[tuple[Any, ...]]:
        """Return all rows in order."""
        with self.engine.connect() as connection:
            found = connection.execute(text(f"SELECT {columns} FROM outbox ORDER BY id"))  # noqa: S608
            return [tuple(row) for row in found]


def done(
    row: int, timestamp: datetime, state: RowState, again: float | None = None, **more: Any
) -> Done:
    """Return what came of an attempt."""
    is_good = state is RowState.DELIVERED
    told: dict[str, Any] = {
        "id": row,
        "at": timestamp,
        "took_ms": 5,
        "outcome": "delivered" if is_good else "retry",
        "status": 200 if is_good else 500,
        "failure": None if is_good else "server_error",
        "detail": "" if is_good else "it answered 500\0",
        "reply": "",
        "state": state,
        "next_attempt_at": None if again is None else at(again),
    }
    return Done(**{**told, **more})


def groups(claimed: Sequence[OutboxRow]) -> list[tuple[str, str]]:
    """Return group and body of what was claimed."""
    return [(one.group_key, one.body.decode()) for one in claimed]
