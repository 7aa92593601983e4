"""Silences as users create and edit them; every edit increments the version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
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

from service.alerting.alerts.matchers import MatcherError, Matchers, parse_matchers
from service.alerting.alerts.silences import Silence, SilenceError, SilenceState, SilenceTerms
from service.storage.database.translate import translate_errors
from service.storage.tables.alerting import SILENCE

# A silence that was never in force ends as soon as it begins; the database resolves microseconds.
INSTANT: Final = timedelta(microseconds=1)
MOST_SILENCES: Final = 5000  # that have not expired, of all clusters: every round reads all of them
# Texts of matchers: more than there are silences, so that none is parsed again, and each caches which values match.
_REMEMBERED: Final = 2 * MOST_SILENCES
LOCK: Final = 0x7369_6C65  # "sile": one new silence at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSilence(SilenceTerms):
    """A silence as stored."""

    id: UUID
    matchers: str  # as Alertmanager prints them
    version: int
    created_at: datetime
    updated_at: datetime


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
            return [silence_of(row) for row in connection.execute(query).mappings()]

    def one(self, silence_id: UUID) -> StoredSilence | None:
        """Return a silence, None if there is none."""
        query = select(SILENCE).where(SILENCE.c.id == silence_id)
        with translate_errors("a silence cannot be read"), self._engine().connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else silence_of(row)


class SilenceEdits:
    """Edits of silences in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def has_room(self, now: datetime) -> bool:
        """Whether one more silence is allowed; until the transaction ends nobody else may add one."""
        self._connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        query = select(func.count()).select_from(SILENCE).where(SILENCE.c.ends_at > now)
        return int(self._connection.execute(query).scalar_one()) < MOST_SILENCES

    def add(self, silence: StoredSilence) -> None:
        """Store a new silence."""
        self._connection.execute(insert(SILENCE).values(**asdict(silence)))

    def take(self, silence_id: UUID) -> StoredSilence | None:
        """Return a silence and lock it until the transaction ends; None if there is none."""
        query = select(SILENCE).where(SILENCE.c.id == silence_id).with_for_update()
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else silence_of(row)

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
        return silence_of(self._connection.execute(edit).mappings().one())


def parse_silence(stored: StoredSilence) -> Silence | None:
    """Return it for alerting; None if this version cannot parse it: all others still hold.

    Whether it may mute every alert, and is cheap, was checked when it was created. The first time that a text
    of matchers is seen it may take milliseconds to compile: not while a transaction is open.
    """
    matchers = parse_once(stored.matchers)
    if matchers is None:
        return None
    try:
        return Silence(
            silence_id=str(stored.id),
            matchers=matchers,
            starts_at=stored.starts_at,
            ends_at=stored.ends_at,
            created_by=stored.created_by,
            comment=stored.comment,
            is_for_all=True,
        )
    except SilenceError:
        return None


@lru_cache(maxsize=_REMEMBERED)
def parse_once(text: str) -> Matchers | None:
    """Return stored matchers; None if this version cannot parse them."""
    try:
        return parse_matchers(text)
    except MatcherError:
        return None


def silence_of(row: RowMapping) -> StoredSilence:
    """Return the silence in a row of its table."""
    return StoredSilence(**row)


def _is_in(state: SilenceState, now: datetime) -> ColumnElement[bool]:
    match state:
        case SilenceState.PENDING:
            return SILENCE.c.starts_at > now
        case SilenceState.ACTIVE:
            return and_(SILENCE.c.starts_at <= now, SILENCE.c.ends_at > now)
        case SilenceState.EXPIRED:
            return SILENCE.c.ends_at <= now
