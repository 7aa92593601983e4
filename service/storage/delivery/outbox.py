"""The outbox: notifications to deliver, claimed by one deliverer at a time, in order per group.

Only the oldest open row of a (receiver, group) is ever claimed. A claim is a lease that is committed
before anything is sent: if a deliverer dies, the lease expires, and the row is claimed again with the
same webhook id. Only `next_attempt_at` decides when a row is read: while a row is being sent it is the
end of its lease, and a row that waits behind another is put off until that one is due, so that no claim
skips the same rows again and again.

PostgreSQL's planner expects few open rows, although they can become many quickly. Every claim is
therefore planned anew, and by the indexes that give the order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Engine, text

from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.notifications.alertmanager import Merged
from service.storage.database.translate import translate_errors
from service.storage.delivery.deliveries import row_of

LEASE: Final = timedelta(seconds=30)  # above the longest attempt
SCANNED: Final = 50  # due rows that one statement reads, and more if they all wait
MOST_SCANNED: Final = 2000
ABSORBED: Final = 500  # older rows that one newer row supersedes at once

# Rows that a service may send: those of its own clusters.
OWN: Final = "cluster = ANY(ARRAY(SELECT id FROM cluster WHERE name = :name))"

_PLANS: Final = text(
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true),"
    " set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)"
)
_DUE: Final = text(f"""
SELECT due.id, head.id AS head, head.next_attempt_at AS head_at
FROM (SELECT id, receiver, group_hash, cluster, next_attempt_at FROM outbox
      WHERE state IN ('waiting', 'sending') AND receiver = :receiver
        AND next_attempt_at <= :now AND {OWN}
      ORDER BY next_attempt_at LIMIT :scanned) AS due
CROSS JOIN LATERAL (
      SELECT id, next_attempt_at FROM outbox AS mine
      WHERE state IN ('waiting', 'sending') AND receiver = due.receiver
        AND group_hash = due.group_hash AND cluster = due.cluster
      ORDER BY mine.receiver, mine.group_hash, mine.id LIMIT 1) AS head
""")  # noqa: S608 - constants of ours
_LOCK: Final = text("""
SELECT * FROM outbox
WHERE id = ANY(:heads) AND state IN ('waiting', 'sending') AND next_attempt_at <= :now
ORDER BY id FOR UPDATE SKIP LOCKED
""")
_LEASE: Final = text("""
UPDATE outbox SET state = 'sending', lease_until = :until, next_attempt_at = :until,
       lease_owner = :owner
WHERE id = ANY(:ids)
""")
_RELEASE: Final = text("""
UPDATE outbox SET state = 'waiting', next_attempt_at = :now, lease_until = NULL, lease_owner = NULL
WHERE id = ANY(:ids) AND state = 'sending' AND lease_owner = :owner
""")
# Completing the head makes the next row due: a locked head is just being completed, and one that is
# share-locked here is completed afterwards.
_PUT_OFF: Final = text("""
WITH held AS (
     SELECT id FROM outbox WHERE id = ANY(:heads) AND state IN ('waiting', 'sending')
     FOR SHARE SKIP LOCKED)
UPDATE outbox SET next_attempt_at = later.at
FROM unnest(CAST(:ids AS bigint[]), CAST(:heads AS bigint[]), CAST(:ats AS timestamptz[]))
     AS later (id, head, at)
JOIN held ON held.id = later.head
WHERE outbox.id = later.id AND outbox.state = 'waiting'
""")
_BEHIND: Final = text("""
SELECT * FROM outbox
WHERE state = 'waiting' AND receiver = :receiver AND group_hash = :group_hash
  AND cluster = :cluster AND id > :id
ORDER BY receiver, group_hash, id LIMIT :absorbed FOR UPDATE SKIP LOCKED
""")
_SUPERSEDED: Final = text("""
UPDATE outbox SET state = 'superseded', superseded_by = :by, done_at = :now, lease_until = NULL,
       lease_owner = NULL
WHERE id = ANY(:ids)
""")
_ABSORBING: Final = text("""
UPDATE outbox SET body = :body, alerts = :alerts, created_at = :created_at WHERE id = :id
""")


Merge = Callable[[Sequence[bytes], bytes], Merged | None]  # older bodies in order, and the newest


@dataclass(frozen=True, slots=True, kw_only=True)
class SendCapacity:
    """How many notifications may be sent to a receiver now, each of another group."""

    receiver: str
    free: int
    merge: Merge  # returns None if the newest body is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Result of claiming from the outbox."""

    claimed: tuple[OutboxRow, ...] = ()  # ours to send until their leases run out
    superseded: tuple[str, ...] = ()  # a receiver's name for each notification


class _Due(NamedTuple):
    id: int
    head: int
    head_at: datetime


class Outbox:
    """Claims for one process; `owner` is drawn once per process."""

    def __init__(self, engine: Callable[[], Engine], name: str, owner: UUID) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name
        self._owner = owner

    def claim(
        self, capacities: Sequence[SendCapacity], now: datetime, busy: Collection[int] = ()
    ) -> Claims:
        """Lease due notifications within the capacities; committed when this returns.

        `busy` are ids that this process is sending, whatever became of their leases.

        Raises:
            StoreError: nothing was claimed, or the answer to COMMIT was lost.
        """
        claimed: list[OutboxRow] = []
        superseded: list[str] = []
        with translate_errors("deliveries cannot be claimed"), self._engine().begin() as connection:
            connection.execute(_PLANS)
            turn = _Turn(connection, self._name, self._owner, now)
            for capacity in capacities:
                for head in turn.lease_heads(capacity, busy):
                    latest, count = turn.latest(head, capacity.merge)
                    claimed.append(latest)
                    superseded += [capacity.receiver] * count
        return Claims(claimed=tuple(claimed), superseded=tuple(superseded))

    def release(self, rows: Sequence[int], now: datetime) -> None:
        """Release claimed notifications that were not sent, so that they are due at once.

        Raises:
            StoreError: the database is away; leases expire by themselves.
        """
        parameters = {"ids": list(rows), "now": now, "owner": self._owner}
        with (
            translate_errors("deliveries cannot be given back"),
            self._engine().begin() as connection,
        ):
            connection.execute(_RELEASE, parameters)


class _Turn:
    """One transaction of claims."""

    def __init__(self, connection: Connection, name: str, owner: UUID, now: datetime) -> None:
        self._connection = connection
        self._name = name
        self._owner = owner
        self._now = now
        self._until = now + LEASE

    def lease_heads(self, capacity: SendCapacity, busy: Collection[int]) -> list[OutboxRow]:
        """Lease the due heads of a receiver's groups, and put off the rows behind them."""
        leased: list[OutboxRow] = []
        passed: set[int] = set()
        scanned = SCANNED
        while len(leased) < capacity.free:
            batch = self._due(capacity.receiver, scanned)
            due = [row for row in batch if row.id not in passed]
            heads = list(dict.fromkeys(row.head for row in due if self._may_claim(row, busy)))
            taken = self._lease(heads[: capacity.free - len(leased)])
            leased += taken
            self._put_off(due, {row.id for row in taken}, busy)
            passed |= {row.id for row in due}
            if not due or len(batch) < scanned:
                break
            scanned = min(2 * scanned, MOST_SCANNED)
        return leased

    def latest(self, head: OutboxRow, merge: Merge) -> tuple[OutboxRow, int]:
        """Return what to send of a group, and how many stuck rows it supersedes."""
        behind = self._behind(head) if head.attempts else []
        if not behind:
            return head, 0
        older, newest = [head, *behind[:-1]], behind[-1]
        merged = merge([delivery.body for delivery in older], newest.body)
        latest = replace(newest, created_at=min(head.created_at, newest.created_at))
        if merged is not None:
            latest = replace(latest, body=merged.body, alerts=merged.alerts)
        ids = [delivery.id for delivery in older]
        self._do(_SUPERSEDED, ids=ids, by=latest.id, now=self._now)
        self._do(
            _ABSORBING,
            id=latest.id,
            body=latest.body,
            alerts=latest.alerts,
            created_at=latest.created_at,
        )
        self._do(_LEASE, ids=[latest.id], until=self._until, owner=self._owner)
        return latest, len(older)

    def _due(self, receiver: str, scanned: int) -> list[_Due]:
        rows = self._do(_DUE, receiver=receiver, name=self._name, now=self._now, scanned=scanned)
        return [_Due(row.id, row.head, row.head_at) for row in rows]

    def _may_claim(self, due: _Due, busy: Collection[int]) -> bool:
        return due.head_at <= self._now and due.head not in busy

    def _lease(self, heads: list[int]) -> list[OutboxRow]:
        if not heads:
            return []
        rows = self._do(_LOCK, heads=heads, now=self._now).mappings()
        taken = [row_of(OutboxRow, row) for row in rows]
        if taken:
            ids = [delivery.id for delivery in taken]
            self._do(_LEASE, ids=ids, until=self._until, owner=self._owner)
        return taken

    def _put_off(self, due: Sequence[_Due], taken: set[int], busy: Collection[int]) -> None:
        """Put off rows behind a head until that head is due."""
        later: list[tuple[int, int, datetime]] = []
        for row in due:
            if row.id in taken:
                continue
            if row.head in taken or row.head in busy:
                later.append((row.id, row.head, self._until))
            elif row.head_at > self._now:
                later.append((row.id, row.head, row.head_at))
        if later:
            ids, heads, ats = map(list, zip(*later, strict=True))
            self._do(_PUT_OFF, ids=ids, heads=heads, ats=ats)

    def _behind(self, head: OutboxRow) -> list[OutboxRow]:
        rows = self._do(
            _BEHIND,
            receiver=head.receiver,
            group_hash=head.group_hash,
            cluster=head.cluster,
            id=head.id,
            absorbed=ABSORBED,
        )
        return [row_of(OutboxRow, row) for row in rows.mappings()]

    def _do(self, statement: Any, **parameters: object) -> Any:
        return self._connection.execute(statement, parameters)
