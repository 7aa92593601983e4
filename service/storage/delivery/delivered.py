"""Stores outcomes of deliveries: one statement each for rows, attempts, and the next of each group."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Engine, text

from service.alerting.alerts.outbox_row import DeadReason, RowState
from service.storage.database.rejections import RejectedRow, RowKind, save_each
from service.storage.database.translate import translate_errors
from service.storage.delivery.deliveries import StoredAttempt
from service.storage.delivery.outbox import OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(StoredAttempt):
    """One attempt, and the resulting state of its notification."""

    id: int  # of the notification's row
    state: RowState  # afterwards: waiting, delivered or dead
    next_attempt_at: datetime | None = None  # only where it waits
    dead_reason: DeadReason | None = None
    drops_body: bool = False  # the body is not needed any more


# A row that another process holds by now is that one's, but a delivery that succeeded is final.
_ROWS: Final = text("""
UPDATE outbox AS o SET
    state = r.state, attempts = o.attempts + 1, lease_until = NULL, lease_owner = NULL,
    next_attempt_at = coalesce(r.next_attempt_at, o.next_attempt_at),
    done_at = CASE WHEN r.state = 'waiting' THEN NULL ELSE CAST(:now AS timestamptz) END,
    dead_reason = r.dead_reason, body = CASE WHEN r.drops_body THEN ''::bytea ELSE o.body END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id bigint, state text,
     next_attempt_at timestamptz, dead_reason text, drops_body boolean)
WHERE o.id = r.id AND ((o.state = 'sending' AND o.lease_owner = :owner)
                       OR (r.state = 'delivered' AND o.state IN ('waiting', 'sending')))
""")
_ATTEMPTS: Final = text("""
INSERT INTO delivery_attempt (outbox, at, took_ms, outcome, status, failure, detail, reply)
SELECT o.id, r.at, r.took_ms, r.outcome, r.status, r.failure, r.detail, r.reply
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id bigint, at timestamptz, took_ms integer,
     outcome text, status integer, failure text, detail text, reply text)
JOIN outbox AS o ON o.id = r.id
WHERE NOT EXISTS (SELECT FROM delivery_attempt AS a WHERE a.outbox = r.id AND a.at = r.at)
""")
_NEXT: Final = text("""
UPDATE outbox SET next_attempt_at = :now
WHERE state = 'waiting' AND next_attempt_at > :now AND id = ANY(ARRAY(
      SELECT head.id FROM outbox AS o CROSS JOIN LATERAL (
             SELECT id FROM outbox AS mine
             WHERE state IN ('waiting', 'sending') AND receiver = o.receiver
               AND group_hash = o.group_hash AND cluster = o.cluster
             ORDER BY mine.receiver, mine.group_hash, mine.id LIMIT 1) AS head
      WHERE o.id = ANY(:ids)))
""")
_ALL_DEAD: Final = text(f"""
UPDATE outbox SET state = 'dead', dead_reason = :why, done_at = :now
WHERE state = 'waiting' AND receiver = :receiver AND {OWN}
""")  # noqa: S608 - constants of ours
_REMOVED: Final = text(f"""
UPDATE outbox SET state = 'dead', dead_reason = :why, done_at = :now, lease_until = NULL,
       lease_owner = NULL
WHERE state IN ('waiting', 'sending') AND next_attempt_at <= :now
  AND (NOT receiver = ANY(CAST(:receivers AS text[])) AND {OWN}
       OR cluster IS NULL AND created_at < :long_ago)
RETURNING receiver
""")  # noqa: S608 - constants of ours
_HASTEN: Final = text(f"""
UPDATE outbox SET next_attempt_at = :now
WHERE state = 'waiting' AND receiver = :receiver AND next_attempt_at > :now AND {OWN}
""")  # noqa: S608 - constants of ours
_SHIFT: Final = text(f"""
UPDATE outbox SET created_at = created_at + :step, enqueued_at = enqueued_at + :step,
       next_attempt_at = next_attempt_at + :step, lease_until = lease_until + :step
WHERE state IN ('waiting', 'sending') AND {OWN}
""")  # noqa: S608 - constants of ours
UNSTORABLE: Final = "the database does not take the text of this attempt"
_CANNOT_CHANGE: Final = "the outbox cannot be changed"
# How long a row without a cluster waits for the service of a version before that wrote it.
_NOBODYS: Final = timedelta(days=1)


class Deliveries:
    """Stores the outcomes of the notifications that one process claimed."""

    def __init__(self, engine: Callable[[], Engine], name: str, owner: UUID) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name
        self._owner = owner

    def complete(self, done: Sequence[Done], now: datetime) -> list[RejectedRow]:
        """Store attempts and the states of their notifications; the next of each group becomes due.

        Idempotent: storing them again after the answer to COMMIT was lost changes nothing. An attempt with a
        text that the database rejects is stored without its texts. Return what it rejects even so.

        Raises:
            StoreError: nothing was stored, or the answer to COMMIT was lost.
        """
        doing = "deliveries cannot be stored"
        over = [attempt.id for attempt in done if attempt.state is not RowState.WAITING]
        with translate_errors(doing), self._engine().begin() as connection:

            def save(part: Sequence[Done]) -> None:
                rows = json.dumps([_row(attempt) for attempt in part])
                connection.execute(_ATTEMPTS, {"rows": rows})
                connection.execute(_ROWS, {"rows": rows, "now": now, "owner": self._owner})

            rejections = save_each(connection, done, save, doing)
            bare = [replace(attempt, detail=UNSTORABLE, reply="") for attempt, _ in rejections]
            rejections = save_each(connection, bare, save, doing)
            if over:
                connection.execute(_NEXT, {"ids": over, "now": now})
        return [
            rejection.report(RowKind.ATTEMPT, str(rejection.row.id)) for rejection in rejections
        ]

    def give_up(self, receiver: str, now: datetime) -> int:
        """Give up all notifications that wait for a receiver that is gone; return how many."""
        why = str(DeadReason.GONE)
        return self._change(_ALL_DEAD, receiver=receiver, why=why, now=now)

    def bury(self, receivers: Collection[str], now: datetime) -> list[str]:
        """Give up notifications for receivers that are not in `receivers`; return a name for each."""
        parameters = {
            "receivers": list(receivers),
            "now": now,
            "name": self._name,
            "why": str(DeadReason.RECEIVER_REMOVED),
            "long_ago": now - _NOBODYS,
        }
        with translate_errors(_CANNOT_CHANGE), self._engine().begin() as connection:
            return list(connection.execute(_REMOVED, parameters).scalars())

    def hasten(self, receiver: str, now: datetime) -> None:
        """Make all that waits for a receiver due now: it accepts notifications again."""
        self._change(_HASTEN, receiver=receiver, now=now)

    def shift(self, step: timedelta) -> None:
        """Move the times of open rows along with a clock step."""
        self._change(_SHIFT, step=step)

    def _change(self, statement: Any, **parameters: object) -> int:
        with translate_errors(_CANNOT_CHANGE), self._engine().begin() as connection:
            return int(connection.execute(statement, {"name": self._name, **parameters}).rowcount)


def _row(done: Done) -> dict[str, object]:
    """Return an attempt as JSON can hold it; PostgreSQL stores no NUL."""
    return {name: _plain(value) for name, value in asdict(done).items()}


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case str():
            return value.replace("\0", "�")
        case _:
            return value
