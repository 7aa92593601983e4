"""Pages of findings, and one finding with its transitions, for every route that shows findings: open ones
from memory, all others from the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rules.errors import StoreError
from rules.facts.last_observation import microseconds
from rules.open_findings import OpenFinding
from service.api.core.paging import Key, Page, decode_cursor, first_of, page_of
from service.api.core.ports import History, Sources
from service.api.core.problems import not_found, unavailable
from service.api.core.queries import PageQuery
from service.api.core.stamps import stamp, stored_stamp
from service.api.findings.views import Finding, FindingDetail, find_open, from_memory, from_storage
from service.rounds.latest import ServiceState
from service.storage.findings.findings import StoredTransition
from service.storage.findings.history import FindingFilter, PastFinding


def open_findings(state: ServiceState) -> Iterator[OpenFinding]:
    """Yield the open findings.

    Raises:
        ProblemError: no round has ended yet.
    """
    if not state.rounds and not state.open_findings:
        raise unavailable("no round has ended yet")
    yield from state.open_findings.values()


def open_page(
    state: ServiceState, query: PageQuery, name: str, entries: Iterable[OpenFinding]
) -> Page[Finding]:
    """Return a page of the list called `name`, newest first; `entries` are those that match.

    Raises:
        ProblemError: the cursor is another list's.
    """
    after = decode_cursor(query.cursor, name, int, str)
    page = page_of(entries, _open_key, after=after, limit=query.limit, newest_first=True)
    cluster_id = cluster_id_of(state)
    return Page([from_memory(entry, cluster_id) for entry in page.items], page.last)


def _open_key(entry: OpenFinding) -> Key:
    return microseconds(entry.since), json.dumps(entry.identity)


def cluster_id_of(state: ServiceState) -> str | None:
    """Return the cluster id that the brokers report; None before the first observation."""
    return None if state.snapshot is None else state.snapshot.cluster_id or None


async def stored_page(sources: Sources, filters: FindingFilter, limit: int) -> Page[Finding]:
    """Return a page of stored findings, newest first."""

    def key(past: PastFinding) -> Key:
        ended_at = past.finding.ended_at if filters.only_ended else None
        return microseconds(ended_at or past.finding.since), past.finding.id

    rows = await sources.in_database(lambda: sources.history.page(filters, limit + 1))
    page = first_of(rows, limit, key)
    return Page([from_storage(past) for past in page.items], page.last)


async def finding_detail(
    sources: Sources, rule_id: str, digits: str, missing: str
) -> FindingDetail:
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
    return _detail(stored_stamp(state), from_storage(past), steps, None)


def _open_detail(
    state: ServiceState,
    entry: OpenFinding,
    steps: Sequence[StoredTransition] | None,
    error: str | None,
) -> FindingDetail:
    return _detail(stamp(state), from_memory(entry, cluster_id_of(state)), steps, error)


def _detail(
    stamped: dict[str, Any],
    finding: Finding,
    steps: Sequence[StoredTransition] | None,
    error: str | None,
) -> FindingDetail:
    fields = {"finding": finding, "transitions": steps, "error": error}
    return FindingDetail.model_validate(stamped | fields)


def _stored(
    history: History, rule_id: str, digits: str
) -> tuple[PastFinding, Sequence[StoredTransition]] | None:
    past = history.one(rule_id, digits)
    return None if past is None else (past, history.transitions(past.finding.id))
