"""Silences as users create and edit them; every edit increments the version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.silences import Silence, SilenceState
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import SILENCE

# A silence that was never in force ends as soon as it begins; the database resolves microseconds.
INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSilence:
    """A silence as stored."""

    id: UUID
    matchers: str  # as Alertmanager prints them
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str
    version: int
    created_at: datetime
    updated_at: datetime

    def state(self, now: datetime) -> SilenceState:
        """Return its state at a time."""
        if now < self.starts_at:
            return SilenceState.PENDING
        return SilenceState.ACTIVE if now < self.ends_at else SilenceState.EXPIRED

    def silence(self) -> Silence:
        """Return it for alerting; whether it may mute every alert was checked when it was created."""
        return Silence(
            silence_id=str(self.id),
            matchers=parse_matchers(self.matchers),
            starts_at=self.starts_at,
            ends_at=self.ends_at,
            created_by=self.created_by,
            comment=self.comment,
            is_for_all=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceFilter:
    """Which silences a page shows."""

    states: Collection[SilenceState]
    now: datetime
    after: tuple[datetime, UUID] | None = None  # end and id of the last one already shown


class SilenceList:
    """Silences, for readers."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered

    def page(self, filters: SilenceFilter, limit: int) -> list[StoredSilence]:
        """Return silences, those that end last first."""
        states = [_is_in(state, filters.now) for state in sorted(filters.states)]
        query = select(SILENCE).where(or_(*states))
        key = tuple_(SILENCE.c.ends_at, SILENCE.c.id)
        if filters.after is not None:
            ends_at, row = filters.after
            timestamp = bindparam("timestamp", ends_at, SILENCE.c.ends_at.type)
            query = query.where(key < tuple_(timestamp, bindparam("row", row, SILENCE.c.id.type)))
        query = query.order_by(SILENCE.c.ends_at.desc(), SILENCE.c.id.desc()).limit(limit)
        with translate_errors("silences cannot be read"), self._engine().connect() as connection:
            return [_silence(row) for row in connection.execute(query).mappings()]

    def one(self, silence_id: UUID) -> StoredSilence | None:
        """Return a silence, None if there is none."""
        query = select(SILENCE).where(SILENCE.c.id == silence_id)
        with translate_errors("a silence cannot be read"), self._engine().connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else _silence(row)


class SilenceEdits:
    """Edits of silences in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, now: datetime) -> int:
        """Count the silences that have not expired."""
        query = select(func.count()).select_from(SILENCE).where(SILENCE.c.ends_at > now)
        return int(self._connection.execute(query).scalar_one())

    def add(self, silence: StoredSilence) -> None:
        """Store a new silence."""
        values = {name: getattr(silence, name) for name in StoredSilence.__dataclass_fields__}
        self._connection.execute(insert(SILENCE).values(**values))

    def take(self, silence_id: UUID) -> StoredSilence | None:
        """Return a silence and lock it until the transaction ends; None if there is none."""
        query = select(SILENCE).where(SILENCE.c.id == silence_id).with_for_update()
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _silence(row)

    def change(self, silence: StoredSilence) -> StoredSilence:
        """Store a new version of a locked silence, and return it."""
        values = {
            "matchers": silence.matchers,
            "starts_at": silence.starts_at,
            "ends_at": silence.ends_at,
            "comment": silence.comment,
            "version": SILENCE.c.version + 1,
            "updated_at": silence.updated_at,
        }
        edit = update(SILENCE).where(SILENCE.c.id == silence.id).values(values).returning(SILENCE)
        return _silence(self._connection.execute(edit).mappings().one())


def _is_in(state: SilenceState, now: datetime) -> ColumnElement[bool]:
    match state:
        case SilenceState.PENDING:
            return SILENCE.c.starts_at > now
        case SilenceState.ACTIVE:
            return and_(SILENCE.c.starts_at <= now, SILENCE.c.ends_at > now)
        case SilenceState.EXPIRED:
            return SILENCE.c.ends_at <= now


def _silence(row: RowMapping) -> StoredSilence:
    return StoredSilence(**row)
