"""Tokens of the HTTP API: the secret is shown once, and only its hash is stored.

The secret has 256 random bits, so a plain SHA-256 cannot be brute-forced.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, Engine, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from rules.errors import StoreError
from service.storage.database.translate import translate_errors
from service.storage.formats.values import read
from service.storage.tables.core import API_TOKEN

PREFIX: Final = "tidemark_"  # for scanners that search for leaked secrets
SECRET_BYTES: Final = 32
USE_NOTED_EVERY: Final = timedelta(minutes=1)  # a scrape must not cost a write each time


class Scope(StrEnum):
    """What a token may do; none implies another."""

    READ = "read"
    ACK = "ack"
    SILENCE = "silence"
    ADMIN = "admin"
    INGEST = "ingest"


@dataclass(frozen=True, slots=True)
class Grant:
    """A caller and its scopes."""

    who: str  # the token's name
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token without its secret."""

    name: str
    scopes: frozenset[Scope]
    created: datetime
    last_used: datetime | None  # to the minute
    revoked: datetime | None
    expires: datetime | None = None  # exclusive; None: never

    def is_expired(self, now: datetime) -> bool:
        """Return whether its time is over."""
        return self.expires is not None and self.expires <= now


def create(
    engine: Engine,
    name: str,
    scopes: Collection[Scope],
    now: datetime,
    expires: datetime | None = None,
) -> str:
    """Create a token and return its secret, which cannot be shown again.

    Raises:
        StoreError: the name is taken, or the database is away.
    """
    if not scopes:
        raise ValueError("a token without scopes can do nothing")
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    words = sorted(scope.value for scope in scopes)
    new = insert(API_TOKEN).values(
        name=name, secret_hash=hash_of(secret), scopes=words, created=now, expires=expires
    )
    with translate_errors(f"token {name} cannot be created"):
        try:
            with engine.begin() as connection:
                connection.execute(new)
        except IntegrityError as exc:
            raise StoreError(f"there is a token {name} already", retryable=False) from exc
    return secret


def verify(engine: Engine, hashes: Collection[str], now: datetime) -> dict[str, ApiToken]:
    """Return the tokens of these hashes that are neither revoked nor expired, and note their use.

    The search is by the secret's hash: how long it takes says nothing about any secret.
    """
    query = select(API_TOKEN).where(
        API_TOKEN.c.secret_hash.in_(hashes),
        API_TOKEN.c.revoked.is_(None),
        or_(API_TOKEN.c.expires.is_(None), API_TOKEN.c.expires > now),
    )
    with translate_errors("a token cannot be checked"), engine.begin() as connection:
        rows = connection.execute(query).mappings().all()
        if rows:
            _note_use(connection, [row["id"] for row in rows], now)
    return {str(row["secret_hash"]): read(ApiToken, row) for row in rows}


def revoke(engine: Engine, name: str, now: datetime) -> bool:
    """Revoke a token for ever; return False if there is none or it was revoked before."""
    revoked = update(API_TOKEN).where(API_TOKEN.c.name == name, API_TOKEN.c.revoked.is_(None))
    with translate_errors(f"token {name} cannot be revoked"), engine.begin() as connection:
        return connection.execute(revoked.values(revoked=now)).rowcount == 1


def list_tokens(engine: Engine) -> list[ApiToken]:
    """Return all tokens, revoked ones too, by name."""
    with translate_errors("tokens cannot be read"), engine.connect() as connection:
        rows = connection.execute(select(API_TOKEN).order_by(API_TOKEN.c.name)).mappings()
        return [read(ApiToken, row) for row in rows]


class StoredTokens:
    """The tokens that were created with `tidemark token`."""

    def __init__(self, engine: Callable[[], Engine], utc_now: Callable[[], datetime]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._utc_now = utc_now

    def verify(self, hashes: Collection[str]) -> dict[str, ApiToken]:
        """Return the tokens of these hashes that are neither revoked nor expired.

        Raises:
            StoreError: the database is away.
        """
        return verify(self._engine(), hashes, self._utc_now())


def _note_use(connection: Connection, ids: Collection[int], now: datetime) -> None:
    last_used = API_TOKEN.c.last_used
    is_old = or_(last_used.is_(None), last_used <= now - USE_NOTED_EVERY)
    used = update(API_TOKEN).where(API_TOKEN.c.id.in_(ids), is_old)
    connection.execute(used.values(last_used=now))


def hash_of(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
