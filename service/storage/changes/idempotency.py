"""Answers to requests that may be sent again, by cluster, caller and Idempotency-Key.

The answer is stored in the transaction of the change, so that neither exists without the other. The
first request holds a lock until its transaction ends; a concurrent one is rejected and does not wait.
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
    """A stored HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A request with a key."""

    who: str
    key: str
    digest: str  # of the whole request


class KeyConflict(StrEnum):
    """Why a request with a key is rejected."""

    RUNNING = "running"  # the first one of that key has not ended
    REUSED = "reused"  # another request had the key


def find_answer(
    connection: Connection, cluster: str, keyed: Keyed, now: datetime
) -> Answer | KeyConflict | None:
    """Lock the key until the transaction ends; return its stored answer, None if there is none.

    `cluster` is the configured name of the one whose service was asked.
    """
    if not _is_ours(connection, cluster, keyed):
        return KeyConflict.RUNNING
    is_it = (
        IDEMPOTENCY.c.cluster == cluster,
        IDEMPOTENCY.c.who == keyed.who,
        IDEMPOTENCY.c.key == keyed.key,
        IDEMPOTENCY.c.created_at > now - KEPT,
    )
    row = connection.execute(select(IDEMPOTENCY).where(*is_it)).mappings().one_or_none()
    if row is None or row["status"] is None:
        return None
    if row["digest"] != keyed.digest:
        return KeyConflict.REUSED
    return Answer(status=row["status"], headers=row["headers"], body=row["body"])


def keep_answer(
    connection: Connection, cluster: str, keyed: Keyed, answer: Answer, now: datetime
) -> None:
    """Store an answer; an expired one is replaced."""
    values = {
        "digest": keyed.digest,
        "status": answer.status,
        "headers": dict(answer.headers),
        "body": answer.body,
        "created_at": now,
    }
    new = insert(IDEMPOTENCY).values(cluster=cluster, who=keyed.who, key=keyed.key, **values)
    key = ["cluster", "who", "key"]
    connection.execute(new.on_conflict_do_update(index_elements=key, set_=values))


def _is_ours(connection: Connection, cluster: str, keyed: Keyed) -> bool:
    name = func.hashtextextended(f"{cluster}\n{keyed.who}\n{keyed.key}", LOCKS)
    return bool(connection.execute(select(func.pg_try_advisory_xact_lock(name))).scalar_one())
