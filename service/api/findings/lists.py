"""Pages of findings, and one finding with its transitions, for every route that shows findings: open ones
from memory, all others from the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from rules.errors import StoreError
from rules.facts.last_observation import microseconds
from rules.facts.times import EPOCH
from rules.open_findings import OpenFinding
from service.api.core import models
from service.api.core.paging import Key, Page, decode_cursor, page_of
from service.api.core.ports import History, Sources
from service.api.core.problems import ProblemError, not_found, unavailable
from service.api.core.queries import PageQuery
from service.api.core.stamps import stamp, stored_stamp
from service.api.findings.views import find_open, from_memory, from_storage, transition_view
from service.rounds.latest import ServiceState
from service.storage.findings.history import FindingFilter, PastFinding

LAST_US: Final = microseconds(datetime(9999, 1, 1, tzinfo=UTC))


# ------------------------------------------------------------------ from memory
def open_page(
    state: ServiceState, query: PageQuery, name: str, entries: Iterable[OpenFinding]
) -> Page[models.Finding]:
    """Return a page of the list called `name`, newest first; `entries` are those that match.

    Raises:
        ProblemError: no round has ended yet, or the cursor is another list's.
    """
    after = decode_cursor(query.cursor, name, int, str)
    if not state.rounds and not state.open_findings:
        raise unavailable("no round has ended yet")
    page = page_of(entries, _open_key, after=after, limit=query.limit, newest_first=True)
    cluster_id = cluster_id_of(state)
    return Page([from_memory(entry, cluster_id) for entry in page.items], page.last)


def _open_key(entry: OpenFinding) -> Key:
    return microseconds(entry.since), json.dumps(entry.identity)


def cluster_id_of(state: ServiceState) -> str | None:
    """Return the cluster id that the brokers report; None before the first observation."""
    return None if state.snapshot is None else state.snapshot.cluster_id or None


# ------------------------------------------------------------------ from the database
async def stored_page(sources: Sources, filters: FindingFilter, limit: int) -> Page[models.Finding]:
    """Return a page of stored findings, newest first."""
    rows = await sources.in_database(lambda: sources.history.page(filters, limit + 1))
    shown = rows[:limit]
    last = _stored_key(shown[-1], only_ended=filters.only_ended) if len(rows) > limit else None
    return Page([from_storage(past) for past in shown], last)


def _stored_key(past: PastFinding, *, only_ended: bool) -> Key:
    timestamp = past.finding.ended_at if only_ended else None
    return microseconds(timestamp or past.finding.since), past.finding.id


def stored_after(query: PageQuery, name: str) -> tuple[datetime, int] | None:
    """Return the key after which a page of stored findings begins.

    Raises:
        ProblemError: the cursor is another list's.
    """
    key = decode_cursor(query.cursor, name, int, int)
    if key is None:
        return None
    if key[0] > LAST_US:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the cursor does not belong to this list")
    return EPOCH + timedelta(microseconds=key[0]), key[1]


# ------------------------------------------------------------------ one finding
async def finding_detail(
    sources: Sources, rule_id: str, digits: str, missing: str
) -> models.FindingDetail:
    """Return a finding from memory or the database, with its transitions if they can be read.

    Raises:
        ProblemError: there is no such finding; its detail is `missing`.
    """
    state = sources.state
    entry = await sources.in_thread(lambda: find_open(state.open_findings, rule_id, digits))
    try:
        stored = await sources.in_database(lambda: _stored(sources.history, rule_id, digits))
    except StoreError as exc:
        if entry is None:
            raise
        return _open_detail(state, entry, None, str(exc))
    if entry is not None:
        is_it = stored is not None and cluster_id_of(state) in (None, stored[0].cluster_id)
        steps = stored[1] if stored is not None and is_it else None
        return _open_detail(state, entry, steps, None if is_it else "it is not stored yet")
    if stored is None:
        raise not_found(missing)
    past, steps = stored
    return models.FindingDetail(
        **stored_stamp(state), finding=from_storage(past), transitions=steps, error=None
    )


def _open_detail(
    state: ServiceState,
    entry: OpenFinding,
    steps: list[models.Transition] | None,
    error: str | None,
) -> models.FindingDetail:
    finding = from_memory(entry, cluster_id_of(state))
    return models.FindingDetail(**stamp(state), finding=finding, transitions=steps, error=error)


def _stored(
    history: History, rule_id: str, digits: str
) -> tuple[PastFinding, list[models.Transition]] | None:
    past = history.one(rule_id, digits)
    if past is None:
        return None
    return past, [transition_view(step) for step in history.transitions(past.finding.id)]
