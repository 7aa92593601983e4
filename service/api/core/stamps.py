"""The fields that every answer about the cluster begins with: time and currency of its data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rules.facts.snapshot import Snapshot
from rules.view import View
from service.api.core.problems import unavailable
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState


def stamp_of(now: datetime) -> dict[str, Any]:
    """Return the time of data that was read at `now`."""
    return {"as_of": now, "is_current": True}


def stamp(state: ServiceState) -> dict[str, Any]:
    """Return the time of the data in memory."""
    taken = None if state.snapshot is None else state.snapshot.taken_at
    return {"as_of": taken, "is_current": state.is_current}


def stored_stamp(state: ServiceState) -> dict[str, Any]:
    """Return the time of the data in the database: that of the last stored round."""
    persistence = state.persistence
    is_stored = persistence.state is PersistenceState.STORED and not persistence.waiting_rounds
    return {"as_of": persistence.stored_at, "is_current": is_stored and state.is_current}


def snapshot_of(state: ServiceState) -> Snapshot:
    """Return the snapshot.

    Raises:
        ProblemError: there is none; an empty list would claim that the cluster is empty.
    """
    if state.snapshot is None:
        why = state.error or "the first round has not ended yet"
        raise unavailable(f"The cluster was not observed yet: {why}")
    return state.snapshot


def view_of(state: ServiceState) -> View:
    """Return the input of the rules in the last round.

    Raises:
        ProblemError: no round has been judged yet.
    """
    snapshot_of(state)
    if state.view is None:
        raise unavailable("no round has been judged yet")
    return state.view
