"""The clusters that were ever watched; another cluster id is another cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Engine, and_, outerjoin, select, update
from sqlalchemy.dialects.postgresql import insert

from service.storage.tables import CHECKPOINT, CLUSTER
from service.storage.translate import translated


@dataclass(frozen=True, slots=True, order=True)
class ClusterKey:
    """What a cluster is: its configured name and the id that its brokers report."""

    name: str
    cluster_id: str  # empty as long as no broker has told it


@dataclass(frozen=True, slots=True)
class RoundId:
    """Which round of which process: what makes storing it twice harmless."""

    writer: UUID  # drawn once per process
    number: int  # rises by one per round


def register(engine: Engine, key: ClusterKey, now: datetime) -> int:
    """Return the row id of a cluster, made if it is new."""
    with translated(f"cluster {key.name} cannot be registered"), engine.begin() as connection:
        return row_id(connection, key, now)


def row_id(connection: Connection, key: ClusterKey, now: datetime) -> int:
    """Return the row id of a cluster, made if it is new."""
    new = insert(CLUSTER).values(name=key.name, cluster_id=key.cluster_id, first_seen=now)
    is_it = and_(CLUSTER.c.name == key.name, CLUSTER.c.cluster_id == key.cluster_id)
    found = connection.execute(select(CLUSTER.c.id).where(is_it)).scalar_one_or_none()
    if found is None:
        connection.execute(new.on_conflict_do_nothing())
        found = connection.execute(select(CLUSTER.c.id).where(is_it)).scalar_one()
    return int(found)


def list_by_name(engine: Engine, name: str) -> list[tuple[int, ClusterKey]]:
    """Return the clusters that had this name, with their row ids; the last stored one is last."""
    stored = outerjoin(CLUSTER, CHECKPOINT, CLUSTER.c.id == CHECKPOINT.c.cluster)
    wanted = select(CLUSTER.c.id, CLUSTER.c.cluster_id).select_from(stored)
    wanted = wanted.where(CLUSTER.c.name == name).order_by(
        CHECKPOINT.c.taken_at.asc().nulls_first(), CLUSTER.c.id
    )
    with translated(f"cluster {name} cannot be looked up"), engine.connect() as connection:
        return [(row.id, ClusterKey(name, row.cluster_id)) for row in connection.execute(wanted)]


def lock_last_round(connection: Connection, cluster: int) -> RoundId | None:
    """Return the last stored round, and keep other writers of this cluster waiting."""
    wanted = select(CLUSTER.c.last_writer, CLUSTER.c.last_round).where(CLUSTER.c.id == cluster)
    row = connection.execute(wanted.with_for_update()).one()
    return None if row.last_writer is None else RoundId(row.last_writer, row.last_round)


def note_round(connection: Connection, cluster: int, last: RoundId) -> None:
    """Remember the last stored round."""
    noted = update(CLUSTER).where(CLUSTER.c.id == cluster)
    connection.execute(noted.values(last_writer=last.writer, last_round=last.number))
