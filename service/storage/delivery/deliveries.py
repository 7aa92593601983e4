"""Queries of deliveries, open and done; nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, func, select, tuple_
from sqlalchemy.dialects.postgresql import distinct_on

from rules.errors import StoreError
from service.alerting.alerts.outbox_row import OutboxRow, RowState
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import DELIVERY_ATTEMPT, OUTBOX
from service.storage.tables.core import CLUSTER

LAST_ATTEMPTS: Final = 100  # of one delivery
LAST_NOTIFIED: Final = 50  # of the groups of one alert
MAX_ATTEMPTS_READ: Final = 10_000  # attempts, for the latest of each receiver
# Words, not members: the driver writes a member of an enumeration by its name.
DELIVERED: Final = RowState.DELIVERED.value  # the state, and the outcome of an attempt
OPEN: Final = (RowState.WAITING.value, RowState.SENDING.value)
DEAD: Final = RowState.DEAD.value

_COLUMNS: Final = [column for column in OUTBOX.c if column.name != "body"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """One attempt to deliver."""

    at: datetime  # aware, UTC; when it began
    took_ms: int | None  # None: nothing could be sent
    outcome: str
    status: int | None = None
    failure: str | None = None
    detail: str = ""
    reply: str = ""


T = TypeVar("T", OutboxRow, StoredAttempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStory:
    """A delivery with its attempts, oldest first."""

    delivery: OutboxRow
    attempts: Sequence[StoredAttempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Backlog of one receiver."""

    waiting: int = 0
    dead: int = 0
    oldest_waiting_at: datetime | None = None  # aware, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverHealth(Backlog):
    """Backlog and latest attempts of one receiver; the attempts are searched among the last ones."""

    last_success_at: datetime | None = None
    last_failure: StoredAttempt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries a page shows; None takes all."""

    receiver: str | None = None
    state: str | None = None
    before: int | None = None  # row id of the last one already shown


class DeliveryList:
    """The deliveries of all clusters of one name."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._is_own = is_of(name)

    def page(self, filters: DeliveryFilter, limit: int) -> list[OutboxRow]:
        """Return deliveries, newest first."""
        query = select(*_COLUMNS).where(self._is_own)
        if filters.receiver is not None:
            query = query.where(OUTBOX.c.receiver == filters.receiver)
        if filters.state is not None:
            query = query.where(OUTBOX.c.state == filters.state)
        if filters.before is not None:
            query = query.where(OUTBOX.c.id < filters.before)
        query = query.order_by(OUTBOX.c.id.desc()).limit(limit)
        with translate_errors("deliveries cannot be read"), self._engine().connect() as connection:
            return [row_of(OutboxRow, row) for row in connection.execute(query).mappings()]

    def one(self, delivery: int) -> DeliveryStory | None:
        """Return a delivery with its attempts, None if there is none."""
        query = select(OUTBOX).where(OUTBOX.c.id == delivery, self._is_own)
        of_it = select(DELIVERY_ATTEMPT).where(DELIVERY_ATTEMPT.c.outbox == delivery)
        last = of_it.order_by(DELIVERY_ATTEMPT.c.id.desc()).limit(LAST_ATTEMPTS)
        with translate_errors("a delivery cannot be read"), self._engine().connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return None
            attempts = [
                row_of(StoredAttempt, mapping) for mapping in connection.execute(last).mappings()
            ]
        return DeliveryStory(delivery=row_of(OutboxRow, row), attempts=attempts[::-1])

    def stats(self, receivers: Sequence[str]) -> dict[str, ReceiverHealth]:
        """Return the statistics of these receivers."""
        with (
            translate_errors("statistics of receivers cannot be read"),
            self._engine().connect() as connection,
        ):
            counts = _counts(connection, self._is_own)
            latest = _latest(connection, self._is_own)
        return {
            name: replace(
                counts.get(name, ReceiverHealth()),
                last_success_at=latest[name, True].at if (name, True) in latest else None,
                last_failure=latest.get((name, False)),
            )
            for name in receivers
        }


def is_of(name: str) -> ColumnElement[bool]:
    """Return the condition that a delivery is of a cluster of a name."""
    return OUTBOX.c.cluster.in_(select(CLUSTER.c.id).where(CLUSTER.c.name == name))


def require_cluster(connection: Connection, name: str) -> int:
    """Return the row id of the newest cluster of a name, for messages of the service itself.

    Raises:
        StoreError: no round of it is stored yet.
    """
    newest = select(func.max(CLUSTER.c.id)).where(CLUSTER.c.name == name)
    row: int | None = connection.execute(newest).scalar_one()
    if row is None:
        raise StoreError(f"no round of cluster {name} is stored yet", retryable=True)
    return row


def list_for_groups(
    connection: Connection, name: str, groups: Sequence[tuple[str, str]], since: datetime
) -> list[OutboxRow]:
    """Return the deliveries of groups (receiver, key) of a cluster's name since a time, newest first."""
    if not groups:
        return []
    is_theirs = tuple_(OUTBOX.c.receiver, OUTBOX.c.group_key).in_(groups)
    query = select(*_COLUMNS).where(is_theirs, is_of(name), OUTBOX.c.created_at >= since)
    newest = query.order_by(OUTBOX.c.id.desc()).limit(LAST_NOTIFIED)
    return [row_of(OutboxRow, row) for row in connection.execute(newest).mappings()]


def row_of(kind: type[T], row: RowMapping) -> T:
    """Return a delivery or an attempt as its row has it; what was not read has its default."""
    return kind(**{field.name: row[field.name] for field in fields(kind) if field.name in row})


def _counts(connection: Connection, is_own: ColumnElement[bool]) -> dict[str, ReceiverHealth]:
    """Return the counts of open and dead deliveries, by receiver."""
    is_open = OUTBOX.c.state.in_(OPEN)
    query = (
        select(
            OUTBOX.c.receiver,
            func.count().filter(is_open).label("waiting"),
            func.count().filter(OUTBOX.c.state == DEAD).label("dead"),
            func.min(OUTBOX.c.created_at).filter(is_open).label("oldest_waiting_at"),
        )
        .where(OUTBOX.c.state.in_((*OPEN, DEAD)), is_own)
        .group_by(OUTBOX.c.receiver)
    )
    return {
        row.receiver: ReceiverHealth(
            waiting=row.waiting, dead=row.dead, oldest_waiting_at=row.oldest_waiting_at
        )
        for row in connection.execute(query)
    }


def _latest(
    connection: Connection, is_own: ColumnElement[bool]
) -> dict[tuple[str, bool], StoredAttempt]:
    """Return the latest attempt by receiver and success, among the last attempts."""
    went_well, receiver = DELIVERY_ATTEMPT.c.outcome == DELIVERED, OUTBOX.c.receiver
    columns = (DELIVERY_ATTEMPT, receiver, went_well.label("went_well"))
    own = select(*columns).join(OUTBOX, OUTBOX.c.id == DELIVERY_ATTEMPT.c.outbox).where(is_own)
    last = own.order_by(DELIVERY_ATTEMPT.c.id.desc()).limit(MAX_ATTEMPTS_READ).subquery()
    key = (last.c.receiver, last.c.went_well)
    latest = select(last).ext(distinct_on(*key)).order_by(*key, last.c.id.desc())
    rows = connection.execute(latest).mappings()
    return {(row["receiver"], row["went_well"]): row_of(StoredAttempt, row) for row in rows}
