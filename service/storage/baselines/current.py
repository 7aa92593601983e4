"""The current run of a cluster: changed by one transaction at a time, visible to all readers at its end."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from service.storage.tables.baselines import BASELINE_CURRENT

LOCKS: Final = 0x6261_7365  # "base": one change of a cluster's runs at a time


def take_turn(connection: Connection, cluster: str) -> None:
    """Lock a cluster's runs until the transaction ends."""
    connection.execute(select(func.pg_advisory_xact_lock(LOCKS, func.hashtext(cluster))))


def make_current(connection: Connection, cluster: str, row: int, now: datetime) -> None:
    """Make this run the one that readers see from the end of the transaction on."""
    current = insert(BASELINE_CURRENT).values(cluster=cluster, run=row, switched_at=now)
    connection.execute(
        current.on_conflict_do_update(
            index_elements=[BASELINE_CURRENT.c.cluster],
            set_={"run": current.excluded.run, "switched_at": current.excluded.switched_at},
        )
    )
