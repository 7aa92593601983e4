"""The clusters that were ever watched; another cluster id is another cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Engine, select, update
from sqlalchemy.dialects.postgresql import insert

from service.storage.tables import CLUSTER
from service.storage.translate import translated


@dataclass(frozen=True, slots=True)
class RoundId:
    """Which round of which process: what makes storing it twice harmless."""

    writer: UUID  # drawn once per process
    number: int  # rises by one per round


def register(engine: Engine, name: str, cluster_id: str, now: datetime) -> int:
    """Return the row id of a cluster, made if it is new."""
    new = insert(CLUSTER).values(name=name, cluster_id=cluster_id, first_seen=now)
    wanted = select(CLUSTER.c.id).where(CLUSTER.c.name == name, CLUSTER.c.cluster_id == cluster_id)
    with translated(f"cluster {name} cannot be registered"), engine.begin() as connection:
        connection.execute(new.on_conflict_do_nothing())
        return int(connection.execute(wanted).scalar_one())


def lock_last_round(connection: Connection, cluster: int) -> RoundId | None:
    """Return the last stored round, and keep other writers of this cluster waiting."""
    wanted = select(CLUSTER.c.last_writer, CLUSTER.c.last_round).where(CLUSTER.c.id == cluster)
    row = connection.execute(wanted.with_for_update()).one()
    return None if row.last_writer is None else RoundId(row.last_writer, row.last_round)


def note_round(connection: Connection, cluster: int, last: RoundId) -> None:
    """Remember the last stored round."""
    noted = update(CLUSTER).where(CLUSTER.c.id == cluster)
    connection.execute(noted.values(last_writer=last.writer, last_round=last.number))
