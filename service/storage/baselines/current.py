"""The current run of a cluster: changed by one transaction at a time, visible to all readers at its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from service.storage.baselines.reading import runs_of
from service.storage.tables.core import BASELINE_CURRENT

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The run before a rollback, and the run after it."""

    left: str
    left_day: date
    run_id: str
    day: date


class NoRunError(Exception):
    """There is no such run, or none before the current one; its text says so."""


class SameRunError(Exception):
    """It is the current one already."""


def roll_back(connection: Connection, cluster: str, to: str | None, now: datetime) -> RolledBack:
    """Make another loaded run the current one of a cluster; None: the one before it.

    The next nightly run becomes the current one as always.

    Raises:
        NoRunError: there is no such run, or none before.
        SameRunError: it is the current one already.
    """
    take_turn(connection, cluster)
    runs = connection.execute(runs_of(cluster)).mappings().all()
    place = next((n for n, row in enumerate(runs) if row["current_since"] is not None), None)
    if place is None:
        raise NoRunError("no run was published yet")
    current = runs[place]
    if to is None:
        if place + 1 == len(runs):
            raise NoRunError(f"no run before {current['run_id']} is kept")
        target = runs[place + 1]
    else:
        matches = [row for row in runs if row["run_id"] == to]
        if not matches:
            raise NoRunError("there is no such run; /api/v1/baselines lists those that are kept")
        target = matches[0]
    if target["id"] == current["id"]:
        raise SameRunError(f"run {target['run_id']} is the current one already")
    make_current(connection, cluster, target["id"], now)
    return RolledBack(
        left=current["run_id"],
        left_day=current["day"],
        run_id=target["run_id"],
        day=target["day"],
    )
