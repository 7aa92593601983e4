"""The fields that every answer about the cluster begins with: time and currency of its data."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from rules.facts.snapshot import Snapshot
from service.api.core.paging import Key, encode_cursor, next_url
from service.api.core.problems import unavailable
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState

MAX_LINK: Final = 4000  # proxies reject longer headers, and a group's name may have 32 KiB


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


def link_next_page(request: Request, response: Response, name: str, last: Key | None) -> str | None:
    """Return the cursor of the next page and add its link; None at the end of the list."""
    if last is None:
        return None
    cursor = encode_cursor(name, last)
    link = f'<{next_url(request, cursor)}>; rel="next"'
    if len(link) <= MAX_LINK:
        response.headers["Link"] = link
    return cursor
