"""All clusters that were ever watched, and their checkpoints; a new cluster id is a new cluster.

All clusters of one name belong to one service at a time, their writer. A service that starts claims them,
and the previous writer is rejected from then on: of two services that store one cluster in one database,
as in a rolling update, the newer one stores and the other one reports why it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, Engine, and_, func, outerjoin, select, update
from sqlalchemy.dialects.postgresql import insert

from rules.errors import StoreError
from service.storage.database.translate import translate_errors
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from service.storage.tables.core import CHECKPOINT, CLUSTER

LOCKS: Final = 0x7469_6D65  # "time": one writer of a cluster's name at a time


@dataclass(frozen=True, slots=True, order=True)
class ClusterKey:
    """Identity of a cluster: its configured name and the id that its brokers report."""

    name: str
    cluster_id: str  # empty as long as no broker has reported it


@dataclass(frozen=True, slots=True)
class RoundId:
    """Identity of a round, which makes storing it twice harmless."""

    writer: UUID  # drawn once per process: a service that starts again is another one
    number: int  # rises with each round, and with each piece of a large one


def register(engine: Engine, key: ClusterKey, now: datetime) -> int:
    """Return the row id of a cluster; create the row if it is new."""
    with translate_errors(f"cluster {key.name} cannot be registered"), engine.begin() as connection:
        return row_id(connection, key, now)


def row_id(connection: Connection, key: ClusterKey, now: datetime) -> int:
    """Return the row id of a cluster; create the row if it is new."""
    new = insert(CLUSTER).values(name=key.name, cluster_id=key.cluster_id, first_seen=now)
    is_it = and_(CLUSTER.c.name == key.name, CLUSTER.c.cluster_id == key.cluster_id)
    row = connection.execute(select(CLUSTER.c.id).where(is_it)).scalar_one_or_none()
    if row is None:
        connection.execute(new.on_conflict_do_nothing())
        row = connection.execute(select(CLUSTER.c.id).where(is_it)).scalar_one()
    return int(row)


@contextmanager
def claim(engine: Engine, name: str, writer: UUID) -> Iterator[None]:
    """Make all clusters of a name a writer's if the block succeeds; other writers wait meanwhile.

    Clusters that are already the writer's stay as they are.
    """
    mine = update(CLUSTER).values(last_writer=writer, last_round=0, claimed_at=func.now())
    others = CLUSTER.c.last_writer.is_distinct_from(writer)
    with translate_errors(f"cluster {name} cannot be claimed"), engine.begin() as connection:
        _take_turn(connection, name)
        connection.execute(mine.where(CLUSTER.c.name == name, others))
        yield


def require_own(connection: Connection, name: str, writer: UUID) -> None:
    """Reject storing a cluster of another writer; until the transaction ends nobody can claim it.

    Raises:
        StoreError: a cluster of this name is another writer's; not retryable.
    """
    _take_turn(connection, name)
    strangers = select(func.max(CLUSTER.c.claimed_at)).where(
        CLUSTER.c.name == name, CLUSTER.c.last_writer != writer
    )
    since = connection.execute(strangers).scalar_one()
    if since is not None:
        raise StoreError(
            f"another Tidemark service keeps cluster {name} in this database since "
            f"{since.isoformat(timespec='seconds')}: stop one of them, or give this one a "
            "cluster name or a database of its own",
            retryable=False,
        )


def _take_turn(connection: Connection, name: str) -> None:
    """Make other writers of this name wait, also if there is no row to lock yet."""
    connection.execute(select(func.pg_advisory_xact_lock(LOCKS, func.hashtext(name))))


def list_by_name(engine: Engine, name: str) -> list[tuple[int, ClusterKey]]:
    """Return the clusters that had this name, with their row ids; the last stored one is last."""
    stored = outerjoin(CLUSTER, CHECKPOINT, CLUSTER.c.id == CHECKPOINT.c.cluster)
    query = select(CLUSTER.c.id, CLUSTER.c.cluster_id).select_from(stored)
    query = query.where(CLUSTER.c.name == name).order_by(
        CHECKPOINT.c.taken_at.asc().nulls_first(), CLUSTER.c.id
    )
    with translate_errors(f"cluster {name} cannot be resolved"), engine.connect() as connection:
        return [(row.id, ClusterKey(name, row.cluster_id)) for row in connection.execute(query)]


def last_round(connection: Connection, cluster: int) -> RoundId | None:
    """Return the last stored round; its number is 0 when the writer has only claimed the cluster."""
    query = select(CLUSTER.c.last_writer, CLUSTER.c.last_round).where(CLUSTER.c.id == cluster)
    row = connection.execute(query).one()
    return None if row.last_writer is None else RoundId(row.last_writer, row.last_round)


def note_round(connection: Connection, cluster: int, last: RoundId) -> None:
    """Store the id of the last stored round."""
    noted = update(CLUSTER).where(CLUSTER.c.id == cluster)
    connection.execute(noted.values(last_writer=last.writer, last_round=last.number))


def load_checkpoint(engine: Engine, cluster: int) -> Checkpoint | None:
    """Return the last checkpoint of a cluster (its row id), None before its first.

    Raises:
        StoreError: the database is away, or the checkpoint cannot be read.
    """
    query = select(CHECKPOINT.c.content, CHECKPOINT.c.format)
    with translate_errors("the checkpoint cannot be read"), engine.connect() as connection:
        row = connection.execute(query.where(CHECKPOINT.c.cluster == cluster)).one_or_none()
    return None if row is None else decode(row.content, row.format)


def save_checkpoint(
    connection: Connection, cluster: int, checkpoint: Checkpoint, taken_at: datetime
) -> None:
    """Replace the checkpoint of a cluster."""
    new = insert(CHECKPOINT).values(
        cluster=cluster, taken_at=taken_at, format=FORMAT, content=encode(checkpoint)
    )
    columns = {name: new.excluded[name] for name in ("taken_at", "format", "content")}
    connection.execute(new.on_conflict_do_update(index_elements=["cluster"], set_=columns))
