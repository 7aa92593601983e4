"""Tokens of the HTTP API: the secret is shown once, and only its hash is stored.

The secret has 256 random bits, so a plain SHA-256 cannot be brute-forced.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Engine, insert, or_, select, update
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
        name=name, secret_hash=_hash(secret), scopes=words, created=now, expires=expires
    )
    with translate_errors(f"token {name} cannot be created"):
        try:
            with engine.begin() as connection:
                connection.execute(new)
        except IntegrityError as exc:
            raise StoreError(f"there is a token {name} already", retryable=False) from exc
    return secret


def verify(engine: Engine, secret: str, now: datetime) -> ApiToken | None:
    """Return the token of a secret, None if there is none, or it was revoked or has expired.

    The search is by the secret's hash: how long it takes says nothing about any secret.
    """
    digest = _hash(secret)
    query = select(API_TOKEN).where(API_TOKEN.c.secret_hash == digest)
    with translate_errors("a token cannot be checked"), engine.begin() as connection:
        row = connection.execute(query).mappings().one_or_none()
        if row is None or not hmac.compare_digest(str(row["secret_hash"]), digest):
            return None
        if row["revoked"] is not None or _is_over(row["expires"], now):
            return None
        is_old = or_(
            API_TOKEN.c.last_used.is_(None), API_TOKEN.c.last_used <= now - USE_NOTED_EVERY
        )
        used = update(API_TOKEN).where(API_TOKEN.c.id == row["id"], is_old)
        connection.execute(used.values(last_used=now))
    return read(ApiToken, row)


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

    def verify(self, secret: str) -> Grant | None:
        """Return the grant of a secret, None if it is unknown, revoked or expired.

        Raises:
            StoreError: the database is away.
        """
        token = verify(self._engine(), secret, self._utc_now())
        return None if token is None else Grant(token.name, token.scopes)


def _is_over(expires: datetime | None, now: datetime) -> bool:
    return expires is not None and expires <= now


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
