"""Switches to another loaded run: only the pointer to the current run changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection

from service.storage.baselines.current import make_current, take_turn
from service.storage.baselines.reading import runs_of


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
