"""Log lines submitted over HTTP, from their acceptance until a stored round has read them.

A writer holds a lock on the cluster's inbox until its transaction ends. Ids are drawn when a row is
written and become visible when it is committed: without the lock a row could be committed after a row with
a higher id that a reader has passed already, and would be skipped for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from sqlalchemy import Connection, Engine, Row, and_, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from rules.facts.broker_log import LogSource
from service.storage.database.translate import translate_errors
from service.storage.formats.log import FORMAT, ParsedLines, decode, encode
from service.storage.formats.values import read
from service.storage.rounds import clusters
from service.storage.tables.core import LOG_INBOX, LOG_STREAM

LOCKS: Final = 0x6C6F_6773  # "logs": one writer of a cluster's inbox at a time
# Lines that were read stay so long: a round that could not be stored reads them again, and a repeated
# request is recognised.
KEPT_READ: Final = timedelta(hours=1)
SILENT: Final = timedelta(days=1)  # a stream without lines for so long is forgotten
BATCH: Final = 5_000  # rows per DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of a delivery, as they are answered."""

    lines: int
    events: int
    unparsed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDelivery:
    """A delivery that was stored before under the same key."""

    digest: str
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """State of the parser of one stream."""

    name: str  # the part of a source that is parsed as one log
    source: str
    state: str
    last_line_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery to be stored."""

    received_at: datetime  # aware, UTC
    key: str | None
    digest: str
    counts: Counts
    parsed: ParsedLines
    streams: Sequence[StreamState]  # all streams that it continued


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLines:
    """Waiting deliveries after a position, oldest first."""

    parsed: tuple[ParsedLines, ...]
    last_id: int | None  # None: nothing waits
    is_all: bool
    sources: tuple[LogSource, ...]  # all known sources, without counts


class Turn(Protocol):
    """One writer's turn: what it adds is committed if the turn succeeds."""

    def find_delivery(self, key: str) -> KnownDelivery | None:
        """Return the delivery that was stored under a key, None if there is none."""

    def waiting(self, after: int) -> int:
        """Return the number of deliveries after an id plus that of their events."""

    def states(self, names: Collection[str]) -> tuple[Mapping[str, str], int]:
        """Return the states of the known ones among some streams, and the number of all streams."""

    def add(self, new: NewDelivery) -> None:
        """Store a delivery, and the states of its streams after it."""


class StoredInbox:
    """The inbox of one cluster, by its configured name; every call may raise `StoreError`."""

    def __init__(self, engine: Callable[[], Engine], cluster: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._cluster = cluster

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Wait for the lock, and commit what the writer adds.

        Raises:
            StoreError: nothing was stored, or the answer to COMMIT was lost.
        """
        doing = "log lines cannot be stored"
        with translate_errors(doing), self._engine().begin() as connection:
            lock = func.pg_advisory_xact_lock(LOCKS, func.hashtext(self._cluster))
            connection.execute(select(lock))
            yield _StoredTurn(connection, self._cluster)

    def after(self, last_id: int, *, max_events: int, max_rows: int) -> WaitingLines:
        """Return waiting deliveries after an id: at least one, then as many as the limits allow."""
        with translate_errors("log lines cannot be read"), self._engine().connect() as connection:
            ids, is_all = self._next_ids(connection, last_id, max_events, max_rows)
            rows = self._rows(connection, last_id, ids[-1]) if ids else []
            sources = self._sources(connection)
        return WaitingLines(
            parsed=tuple(decode(row.content, row.format) for row in rows),
            last_id=ids[-1] if ids else None,
            is_all=is_all,
            sources=sources,
        )

    def stored_position(self, feed: str) -> str | None:
        """Return the position in a feed up to which the last stored round has read, None if none has."""
        engine = self._engine()
        stored = clusters.list_by_name(engine, self._cluster)
        checkpoint = clusters.load_checkpoint(engine, stored[-1][0]) if stored else None
        return None if checkpoint is None else checkpoint.log_positions.get(feed)

    def remove_read(self, up_to: int, now: datetime) -> int:
        """Remove deliveries up to an id that were received over an hour ago, and silent streams."""
        mine, old = LOG_INBOX.c.cluster == self._cluster, now - KEPT_READ
        is_read = and_(mine, LOG_INBOX.c.id <= up_to, LOG_INBOX.c.received_at < old)
        first = select(LOG_INBOX.c.id).where(is_read).order_by(LOG_INBOX.c.id).limit(BATCH)
        silent = and_(LOG_STREAM.c.cluster == self._cluster, LOG_STREAM.c.updated_at < now - SILENT)
        removed, count = 0, BATCH
        with translate_errors("log lines that were read cannot be removed"):
            while count == BATCH:
                with self._engine().begin() as connection:
                    chosen = delete(LOG_INBOX).where(LOG_INBOX.c.id.in_(first))
                    count = connection.execute(chosen).rowcount
                removed += count
            with self._engine().begin() as connection:
                connection.execute(delete(LOG_STREAM).where(silent))
        return removed

    def _next_ids(
        self, connection: Connection, last_id: int, max_events: int, max_rows: int
    ) -> tuple[list[int], bool]:
        """Return the ids to read next, and whether they are all that wait."""
        query = select(LOG_INBOX.c.id, LOG_INBOX.c.events).where(
            LOG_INBOX.c.cluster == self._cluster, LOG_INBOX.c.id > last_id
        )
        rows = connection.execute(query.order_by(LOG_INBOX.c.id).limit(max_rows + 1)).all()
        ids: list[int] = []
        events = 0
        for row in rows[:max_rows]:
            events += row.events
            if ids and events > max_events:
                break
            ids.append(row.id)
        return ids, len(ids) == len(rows)

    def _rows(self, connection: Connection, after: int, up_to: int) -> Sequence[Row[str, int]]:
        query = select(LOG_INBOX.c.content, LOG_INBOX.c.format).where(
            LOG_INBOX.c.cluster == self._cluster,
            LOG_INBOX.c.id > after,
            LOG_INBOX.c.id <= up_to,
        )
        return connection.execute(query.order_by(LOG_INBOX.c.id)).all()

    def _sources(self, connection: Connection) -> tuple[LogSource, ...]:
        last = func.max(LOG_STREAM.c.last_line_at).label("last_line_at")
        query = select(LOG_STREAM.c.source, last).where(LOG_STREAM.c.cluster == self._cluster)
        ordered = query.group_by(LOG_STREAM.c.source).order_by(LOG_STREAM.c.source)
        rows = connection.execute(ordered)
        return tuple(LogSource(name=row.source, last_line_at=row.last_line_at) for row in rows)


class _StoredTurn:
    """A turn within one transaction."""

    def __init__(self, connection: Connection, cluster: str) -> None:
        self._connection = connection
        self._cluster = cluster

    def find_delivery(self, key: str) -> KnownDelivery | None:
        query = select(LOG_INBOX).where(
            LOG_INBOX.c.cluster == self._cluster, LOG_INBOX.c.key == key
        )
        row = self._connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return KnownDelivery(digest=row["digest"], counts=read(Counts, row))

    def waiting(self, after: int) -> int:
        count = func.count() + func.coalesce(func.sum(LOG_INBOX.c.events), 0)
        query = select(count).where(LOG_INBOX.c.cluster == self._cluster, LOG_INBOX.c.id > after)
        return int(self._connection.execute(query).scalar_one())

    def states(self, names: Collection[str]) -> tuple[Mapping[str, str], int]:
        mine = LOG_STREAM.c.cluster == self._cluster
        count = select(func.count()).select_from(LOG_STREAM).where(mine)
        query = select(LOG_STREAM.c.name, LOG_STREAM.c.state)
        rows = self._connection.execute(query.where(mine, LOG_STREAM.c.name.in_(names)))
        states = {row.name: row.state for row in rows}
        return states, int(self._connection.execute(count).scalar_one())

    def add(self, new: NewDelivery) -> None:
        self._connection.execute(
            insert(LOG_INBOX).values(
                cluster=self._cluster,
                received_at=new.received_at,
                key=new.key,
                digest=new.digest,
                **asdict(new.counts),
                format=FORMAT,
                content=encode(new.parsed),
            )
        )
        self._move_on(new.streams, new.received_at)

    def _move_on(self, streams: Sequence[StreamState], now: datetime) -> None:
        """Store the states of streams; the time of a last line never goes back."""
        upsert = insert(LOG_STREAM)
        latest = func.greatest(LOG_STREAM.c.last_line_at, upsert.excluded.last_line_at)
        moved = {
            "state": upsert.excluded.state,
            "last_line_at": latest,
            "updated_at": upsert.excluded.updated_at,
        }
        self._connection.execute(
            upsert.on_conflict_do_update(index_elements=["cluster", "name"], set_=moved),
            [{"cluster": self._cluster, "updated_at": now, **asdict(stream)} for stream in streams],
        )
