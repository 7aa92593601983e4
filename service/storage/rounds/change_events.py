"""Change events: stored with the round that saw them, read by time.

A round is stored once, and so is each of its events: their ids are lasting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, exists, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from rules.facts.change_events import ChangeEvent, ChangeEventKind
from rules.facts.times import time_of
from service.storage.database.translate import translate_errors
from service.storage.findings.findings import ESCAPE, like_of
from service.storage.formats.change_events import FORMAT, decode, encode, topics_of
from service.storage.tables.core import CHANGE_EVENT, CLUSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEventFilter:
    """Which events a page shows; None takes all."""

    cluster: str  # configured name
    kind: ChangeEventKind | None = None
    topic: str | None = None  # a pattern: an asterisk matches any text
    since: datetime | None = None
    until: datetime | None = None
    after: tuple[datetime, int] | None = None  # time and row id of the last one already shown


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChangeEvent:
    """An event and its row; its times are as stored."""

    row: int
    cluster: str  # configured name
    cluster_id: str
    event: ChangeEvent
    seen_at: datetime
    since: datetime | None


def save(connection: Connection, cluster: int, events: Sequence[ChangeEvent]) -> None:
    """Store events of a cluster (its row id); those that are stored already stay as they are."""
    if not events:
        return
    rows = [
        {
            "cluster": cluster,
            "event_id": event.id,
            "kind": event.kind.value,
            "seen_at": time_of(event.seen_us),
            "since": None if event.since_us is None else time_of(event.since_us),
            "topics": topics_of(event),
            "format": FORMAT,
            "content": encode(event),
        }
        for event in events
    ]
    connection.execute(insert(CHANGE_EVENT).on_conflict_do_nothing(), rows)


class ChangeEventList:
    """The change events of all clusters of the database, for readers."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered

    def page(self, filters: ChangeEventFilter, limit: int) -> list[StoredChangeEvent]:
        """Return events, those seen last first."""
        return self._read(_conditions(filters), limit)

    def find(self, cluster: str, event_id: str) -> StoredChangeEvent | None:
        """Return an event of a cluster by its id; None if there is none."""
        conditions = [CLUSTER.c.name == cluster, CHANGE_EVENT.c.event_id == event_id]
        return next(iter(self._read(conditions, 1)), None)

    def _read(
        self, conditions: Sequence[ColumnElement[bool]], limit: int
    ) -> list[StoredChangeEvent]:
        joined = CHANGE_EVENT.join(CLUSTER, CLUSTER.c.id == CHANGE_EVENT.c.cluster)
        columns = (CHANGE_EVENT, CLUSTER.c.name, CLUSTER.c.cluster_id.label("of_cluster_id"))
        query = select(*columns).select_from(joined).where(*conditions)
        query = query.order_by(CHANGE_EVENT.c.seen_at.desc(), CHANGE_EVENT.c.id.desc())
        doing = "change events cannot be read"
        with translate_errors(doing), self._engine().connect() as connection:
            return [_event(row) for row in connection.execute(query.limit(limit)).mappings()]


def _conditions(filters: ChangeEventFilter) -> list[ColumnElement[bool]]:
    seen_at = CHANGE_EVENT.c.seen_at
    conditions = [CLUSTER.c.name == filters.cluster]
    if filters.kind is not None:
        conditions.append(CHANGE_EVENT.c.kind == filters.kind.value)
    if filters.since is not None:
        conditions.append(seen_at >= filters.since)
    if filters.until is not None:
        conditions.append(seen_at <= filters.until)
    if filters.after is not None:
        conditions.append(tuple_(seen_at, CHANGE_EVENT.c.id) < filters.after)
    if filters.topic is not None:
        topic = func.unnest(CHANGE_EVENT.c.topics).column_valued("topic")
        is_it = topic.like(like_of(filters.topic), escape=ESCAPE)
        conditions.append(exists(select(1).where(is_it)))
    return conditions


def _event(row: Any) -> StoredChangeEvent:
    return StoredChangeEvent(
        row=row["id"],
        cluster=row["name"],
        cluster_id=row["of_cluster_id"],
        event=decode(row["content"], row["format"]),
        seen_at=row["seen_at"],
        since=row["since"],
    )
