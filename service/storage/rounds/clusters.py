"""The clusters that were ever watched; another cluster id is another cluster.

All clusters of one name belong to one service at a time, its writer. A service that starts claims
them, and who kept them before is rejected from then on: of two services that watch one cluster into
one database, which a rolling update starts, the newest one stores and the other one says why not.
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
from service.storage.database.translate import translated
from service.storage.tables.core import CHECKPOINT, CLUSTER

LOCKS: Final = 0x7469_6D65  # "time": one writer of a cluster's name at a time


@dataclass(frozen=True, slots=True, order=True)
class ClusterKey:
    """What a cluster is: its configured name and the id that its brokers report."""

    name: str
    cluster_id: str  # empty as long as no broker has told it


@dataclass(frozen=True, slots=True)
class RoundId:
    """Which round of which process: what makes storing it twice harmless."""

    writer: UUID  # drawn once per process: a service that starts again is another one
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


@contextmanager
def claimed(engine: Engine, name: str, writer: UUID) -> Iterator[None]:
    """Make all clusters of a name a writer's when the block ends well; nobody stores meanwhile.

    What is theirs already stays as it is.
    """
    mine = update(CLUSTER).values(last_writer=writer, last_round=0, claimed_at=func.now())
    others = CLUSTER.c.last_writer.is_distinct_from(writer)
    with translated(f"cluster {name} cannot be claimed"), engine.begin() as connection:
        _take_turn(connection, name)
        connection.execute(mine.where(CLUSTER.c.name == name, others))
        yield


def require_own(connection: Connection, name: str, writer: UUID) -> None:
    """Refuse to store what another writer keeps; until the transaction ends nobody can claim it.

    Raises:
        StoreError: a cluster of this name is another writer's, and will not be given back.
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
    """Keep other writers of this name waiting, also where there is no row yet to lock."""
    connection.execute(select(func.pg_advisory_xact_lock(LOCKS, func.hashtext(name))))


def list_by_name(engine: Engine, name: str) -> list[tuple[int, ClusterKey]]:
    """Return the clusters that had this name, with their row ids; the last stored one is last."""
    stored = outerjoin(CLUSTER, CHECKPOINT, CLUSTER.c.id == CHECKPOINT.c.cluster)
    wanted = select(CLUSTER.c.id, CLUSTER.c.cluster_id).select_from(stored)
    wanted = wanted.where(CLUSTER.c.name == name).order_by(
        CHECKPOINT.c.taken_at.asc().nulls_first(), CLUSTER.c.id
    )
    with translated(f"cluster {name} cannot be resolved"), engine.connect() as connection:
        return [(row.id, ClusterKey(name, row.cluster_id)) for row in connection.execute(wanted)]


def last_round(connection: Connection, cluster: int) -> RoundId | None:
    """Return the last stored round; its number is 0 when the writer has only claimed the cluster."""
    wanted = select(CLUSTER.c.last_writer, CLUSTER.c.last_round).where(CLUSTER.c.id == cluster)
    row = connection.execute(wanted).one()
    return None if row.last_writer is None else RoundId(row.last_writer, row.last_round)


def note_round(connection: Connection, cluster: int, last: RoundId) -> None:
    """Remember the last stored round."""
    noted = update(CLUSTER).where(CLUSTER.c.id == cluster)
    connection.execute(noted.values(last_writer=last.writer, last_round=last.number))
