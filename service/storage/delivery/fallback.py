"""Who is late: notifications that another receiver is told of, and how much waits for whom.

A notification that fires, and was not taken in time or at all, is told to the fallback receiver
once, unless something newer of its group was. What ends later is told there too, if its beginning was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Engine, text

from service.storage.database.translate import translated
from service.storage.delivery.outbox import OWN
from service.storage.delivery.posting import Message, post

_LOOKBACK: Final = timedelta(days=1)
_MOST: Final = 100  # at once

# A repetition says nothing new to whom its group was told lately; who waits for the Watchdog misses
# it without our help.
_LATE: Final = text(f"""
SELECT id, receiver, group_key, group_hash, cluster, reason, is_firing, alerts, body, created_at,
       state
FROM outbox AS o
WHERE (state IN ('waiting', 'sending') AND created_at <= :late
       OR state = 'dead' AND done_at >= :since)
  AND is_firing AND receiver <> :fallback AND fallback_of IS NULL AND length(body) > 0
  AND NOT receiver = ANY(CAST(:without AS text[])) AND {OWN}
  AND NOT EXISTS (SELECT FROM outbox AS f WHERE f.fallback_of = o.id)
  AND NOT EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS newer ON newer.id = f.fallback_of
      WHERE f.fallback_of > o.id AND newer.receiver = o.receiver
        AND newer.group_hash = o.group_hash AND newer.cluster IS NOT DISTINCT FROM o.cluster)
  AND reason <> 'watchdog'
  AND NOT (reason = 'repeat interval elapsed' AND EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS told ON told.id = f.fallback_of
      WHERE f.fallback_of IS NOT NULL AND f.created_at >= :since
        AND told.receiver = o.receiver AND told.group_hash = o.group_hash))
ORDER BY id LIMIT :most
""")  # noqa: S608 - constants of ours
_ENDED: Final = text("""
SELECT DISTINCT ON (told.receiver, told.group_hash) ended.id, ended.receiver, ended.group_key,
       ended.group_hash, ended.cluster, ended.reason, ended.is_firing, ended.alerts, ended.body,
       ended.created_at, ended.state
FROM outbox AS copy
JOIN outbox AS told ON told.id = copy.fallback_of
CROSS JOIN LATERAL (
     SELECT * FROM outbox AS later
     WHERE later.id > told.id AND later.receiver = told.receiver
       AND later.group_hash = told.group_hash AND later.cluster IS NOT DISTINCT FROM told.cluster
     ORDER BY later.id DESC LIMIT 1) AS ended
WHERE copy.fallback_of IS NOT NULL AND copy.is_firing AND copy.created_at >= :since
  AND NOT ended.is_firing AND length(ended.body) > 0
  AND (told.cluster IS NULL OR told.cluster IN (SELECT id FROM cluster WHERE name = :name))
  AND NOT EXISTS (
      SELECT FROM outbox AS f JOIN outbox AS newer ON newer.id = f.fallback_of
      WHERE f.fallback_of > told.id AND NOT newer.is_firing AND newer.receiver = told.receiver
        AND newer.group_hash = told.group_hash AND newer.cluster IS NOT DISTINCT FROM told.cluster)
ORDER BY told.receiver, told.group_hash, ended.id DESC LIMIT :most
""")
_COUNTS: Final = text(f"""
SELECT receiver, count(*) FILTER (WHERE state <> 'dead') AS waiting,
       count(*) FILTER (WHERE state = 'dead') AS dead,
       min(created_at) FILTER (WHERE state <> 'dead') AS oldest
FROM outbox
WHERE (state IN ('waiting', 'sending') OR state = 'dead' AND done_at >= :since) AND {OWN}
GROUP BY receiver
""")  # noqa: S608 - constants of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A notification that its receiver has not taken, or the end of one."""

    id: int
    receiver: str
    group_key: str
    group_hash: str
    cluster: int | None
    reason: str
    is_firing: bool
    alerts: int
    body: bytes
    created_at: datetime  # aware, UTC
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How much waits for one receiver."""

    waiting: int = 0
    dead: int = 0  # given up within a day
    oldest: datetime | None = None  # aware, UTC; of what waits


class Backlogs:
    """Observes the outbox of one service."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    def counts(self, now: datetime) -> dict[str, Backlog]:
        """Return how much waits, by receiver."""
        given = {"since": now - _LOOKBACK, "name": self._name}
        with translated("the outbox cannot be counted"), self._engine().connect() as connection:
            return {
                row.receiver: Backlog(waiting=row.waiting, dead=row.dead, oldest=row.oldest)
                for row in connection.execute(_COUNTS, given)
            }

    def late(
        self, fallback: str, *, after: timedelta, now: datetime, without: Collection[str] = ()
    ) -> list[Late]:
        """Return what the fallback receiver has to be told, oldest first; `without` some receivers."""
        given = {
            "fallback": fallback,
            "late": now - after,
            "since": now - _LOOKBACK,
            "without": list(without),
            "name": self._name,
            "most": _MOST,
        }
        with translated("late deliveries cannot be read"), self._engine().connect() as connection:
            rows = [*connection.execute(_LATE, given).mappings()]
            rows += connection.execute(_ENDED, given).mappings()
        return [Late(**row) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def post(self, messages: Sequence[Message]) -> int:
        """Put messages into the outbox; return how many were not there already."""
        with translated("messages cannot be stored"), self._engine().begin() as connection:
            return sum(post(connection, message) is not None for message in messages)
