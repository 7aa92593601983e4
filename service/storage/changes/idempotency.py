"""Requests that are sent again: their answers, by who asks and the key that he gave.

The answer is kept in the transaction of the change, so that there is one exactly if the other is
there. Who is first holds a lock until his transaction ends; whoever comes meanwhile is told so, and
does not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from service.storage.tables.alerting import IDEMPOTENCY

LOCKS: Final = 0x6964_656D  # "idem": a seed of its own, apart from other locks
KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A request with a key."""

    who: str
    key: str
    digest: str  # of all that was asked


class KeyConflict(StrEnum):
    """Why a request with a key is not done."""

    RUNNING = "running"  # the first one of that key has not ended
    REUSED = "reused"  # another request had the key


def known(connection: Connection, asked: Keyed, now: datetime) -> Answer | KeyConflict | None:
    """Take the key until the transaction ends; return the answer that was given, None if none was."""
    if not _is_ours(connection, asked):
        return KeyConflict.RUNNING
    is_it = (
        IDEMPOTENCY.c.who == asked.who,
        IDEMPOTENCY.c.key == asked.key,
        IDEMPOTENCY.c.created_at > now - KEPT,
    )
    row = connection.execute(select(IDEMPOTENCY).where(*is_it)).mappings().one_or_none()
    if row is None or row["status"] is None:
        return None
    if row["digest"] != asked.digest:
        return KeyConflict.REUSED
    return Answer(status=row["status"], headers=row["headers"], body=row["body"])


def keep(connection: Connection, asked: Keyed, answer: Answer, now: datetime) -> None:
    """Keep an answer; one whose time is over is replaced."""
    given = {
        "digest": asked.digest,
        "status": answer.status,
        "headers": dict(answer.headers),
        "body": answer.body,
        "created_at": now,
    }
    new = insert(IDEMPOTENCY).values(who=asked.who, key=asked.key, **given)
    connection.execute(new.on_conflict_do_update(index_elements=["who", "key"], set_=given))


def _is_ours(connection: Connection, asked: Keyed) -> bool:
    name = func.hashtextextended(f"{asked.who}\n{asked.key}", LOCKS)
    return bool(connection.execute(select(func.pg_try_advisory_xact_lock(name))).scalar_one())
