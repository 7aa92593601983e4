"""Late notifications, which go to the fallback receiver, and the backlog of each receiver.

A firing notification that was not accepted in time or at all goes to the fallback receiver once, unless
a newer one of its group did. Its end goes there too, if its beginning did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Engine, text

from service.alerting.alerts.outbox_row import OutboxRow, Outgoing
from service.storage.database.translate import translate_errors
from service.storage.delivery.deliveries import Backlog, require_cluster, row_of
from service.storage.delivery.enqueuing import post
from service.storage.delivery.outbox import OWN

_LOOKBACK: Final = timedelta(days=1)
_MOST: Final = 100  # at once

# A repetition is not news if the fallback receiver got its group lately; whoever waits for the Watchdog
# notices its absence anyway.
_LATE: Final = text(f"""
SELECT * FROM outbox AS o
WHERE (state IN ('waiting', 'sending') AND created_at <= :late
       OR state = 'dead' AND done_at >= :since)
  AND is_firing AND receiver <> :fallback AND fallback_of IS NULL AND length(body) > 0
  AND {OWN}
  AND NOT EXISTS (SELECT FROM outbox AS f WHERE f.fallback_of = o.id)
  AND NOT EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS newer ON newer.id = f.fallback_of
      WHERE f.fallback_of > o.id AND newer.receiver = o.receiver
        AND newer.group_hash = o.group_hash AND newer.cluster = o.cluster)
  AND reason <> 'watchdog'
  AND NOT (reason = 'repeat interval elapsed' AND EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS original ON original.id = f.fallback_of
      WHERE f.fallback_of IS NOT NULL AND f.created_at >= :since
        AND original.receiver = o.receiver AND original.group_hash = o.group_hash
        AND original.cluster = o.cluster))
ORDER BY id LIMIT :most
""")  # noqa: S608 - constants of ours
_ENDED: Final = text("""
SELECT DISTINCT ON (original.cluster, original.receiver, original.group_hash) ended.*
FROM outbox AS copy
JOIN outbox AS original ON original.id = copy.fallback_of
CROSS JOIN LATERAL (
     SELECT * FROM outbox AS later
     WHERE later.id > original.id AND later.receiver = original.receiver
       AND later.group_hash = original.group_hash AND later.cluster = original.cluster
     ORDER BY later.id DESC LIMIT 1) AS ended
WHERE copy.fallback_of IS NOT NULL AND copy.is_firing AND copy.created_at >= :since
  AND NOT ended.is_firing AND length(ended.body) > 0
  AND original.cluster = ANY(ARRAY(SELECT id FROM cluster WHERE name = :name))
  AND NOT EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS newer ON newer.id = f.fallback_of
      WHERE f.fallback_of > original.id AND NOT newer.is_firing AND newer.receiver = original.receiver
        AND newer.group_hash = original.group_hash AND newer.cluster = original.cluster)
ORDER BY original.cluster, original.receiver, original.group_hash, ended.id DESC LIMIT :most
""")
_COUNTS: Final = text(f"""
SELECT receiver, count(*) FILTER (WHERE state <> 'dead') AS waiting,
       count(*) FILTER (WHERE state = 'dead') AS dead,
       min(created_at) FILTER (WHERE state <> 'dead') AS oldest
FROM outbox
WHERE (state IN ('waiting', 'sending') OR state = 'dead' AND done_at >= :since) AND {OWN}
GROUP BY receiver
""")  # noqa: S608 - constants of ours


class Backlogs:
    """Reads the backlogs in the outbox of one service."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    def counts(self, now: datetime) -> dict[str, Backlog]:
        """Return the backlogs by receiver; only what was given up within a day counts as dead."""
        parameters = {"since": now - _LOOKBACK, "name": self._name}
        with (
            translate_errors("the outbox cannot be counted"),
            self._engine().connect() as connection,
        ):
            return {
                row.receiver: Backlog(
                    waiting=row.waiting, dead=row.dead, oldest_waiting_at=row.oldest
                )
                for row in connection.execute(_COUNTS, parameters)
            }

    def late(self, fallback: str, *, after: timedelta, now: datetime) -> list[OutboxRow]:
        """Return what the fallback receiver has to be notified of, oldest first."""
        parameters = {
            "fallback": fallback,
            "late": now - after,
            "since": now - _LOOKBACK,
            "name": self._name,
            "most": _MOST,
        }
        with (
            translate_errors("late deliveries cannot be read"),
            self._engine().connect() as connection,
        ):
            rows = [*connection.execute(_LATE, parameters).mappings()]
            rows += connection.execute(_ENDED, parameters).mappings()
        late = [row_of(OutboxRow, row) for row in rows]
        return sorted(late, key=lambda row: row.id)

    def post(self, messages: Sequence[Outgoing], now: datetime) -> int:
        """Put messages into the outbox; return how many were not there already.

        Raises:
            StoreError: the database is away, or no round of the cluster is stored yet.
        """
        with translate_errors("messages cannot be stored"), self._engine().begin() as connection:
            return len(post(connection, messages, require_cluster(connection, self._name), now))
