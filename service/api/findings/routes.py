"""Routes of findings: open ones from memory, all others from the database. Losses show findings the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator

from rules.errors import StoreError
from rules.facts.last_observation import microseconds
from rules.open_findings import OpenFinding
from rules.verdict import Severity, Verdict
from service.api.core.models import VerdictWord
from service.api.core.paging import (
    Key,
    Page,
    Paging,
    decode_cursor,
    decode_time_cursor,
    first_of,
)
from service.api.core.ports import History, Sources
from service.api.core.problems import existing
from service.api.core.queries import (
    NoParameters,
    PageQuery,
    Pattern,
    StateFilter,
    matches,
    require_known_rule,
)
from service.api.core.stamps import stamp, stored_stamp
from service.api.findings.open_list import OpenList
from service.api.findings.views import (
    Finding,
    FindingDetail,
    FindingPage,
    from_memory,
    from_storage,
    parse_id,
)
from service.rounds.latest import ServiceState
from service.storage.findings.findings import StoredTransition
from service.storage.findings.history import FindingFilter, PastFinding

NO_FINDING: Final = "there is no such finding"


class FindingQuery(PageQuery):
    """Which findings."""

    state: StateFilter = StateFilter.OPEN
    """open: from memory; ended, all: from the database"""
    rule: Annotated[str | None, AfterValidator(require_known_rule)] = None
    topic: Pattern | None = None
    """For a finding about a group or a transaction: one of its partitions"""
    severity: Severity | None = None
    verdict: VerdictWord | None = None


def findings_router(sources: Sources, open_list: OpenList) -> APIRouter:
    """Return the routes of findings."""
    router = APIRouter(tags=["findings"])

    @router.get("/findings", response_model=FindingPage)
    async def list_findings(paging: Paging, query: Annotated[FindingQuery, Query()]) -> Response:
        """Return findings, newest first: by their end if only ended ones are requested."""
        state, name = sources.state, f"findings-{query.state}"

        def answer(page: Page[Finding], stamped: dict[str, Any]) -> FindingPage:
            storage = state.persistence.state
            return FindingPage(**stamped, **paging.page(name, page), storage=storage)

        if query.state is StateFilter.OPEN:
            return await sources.answers.render_once(
                state,
                lambda: answer(open_page(open_list, state, query, name), stamp(state)),
                paging,
            )
        rows = await stored_rows(sources, _filter_of(query, name), query.limit)
        return await sources.answers.render(
            lambda: answer(_stored_page(rows), stored_stamp(state)), paging
        )

    @router.get("/findings/{finding_id}", response_model=FindingDetail)
    async def get_finding(
        finding_id: Annotated[str, Path(examples=["partition_offline-0123456789abcdef"])],
        _query: NoParameters,
    ) -> Response:
        """Return a finding with the last 1000 changes of its verdict, oldest first."""
        name = existing(parse_id(finding_id), NO_FINDING)
        detail = await finding_detail(sources, open_list, *name, NO_FINDING)
        return await sources.answers.render(detail)

    return router


def _is_queried(entry: OpenFinding, query: FindingQuery) -> bool:
    return (
        query.rule in (None, entry.identity[0])
        and query.severity in (None, entry.severity)
        and _verdict(query.verdict) in (None, entry.verdict)
        and _is_of(query.topic, entry)
    )


def _is_of(topic: str | None, entry: OpenFinding) -> bool:
    """Return whether the labels or the evidence of a finding name a topic that matches a pattern."""
    if topic is None:
        return True
    rows = entry.evidence.get("partitions")
    shown = [row.get("topic") for row in rows] if isinstance(rows, list) else []
    names = (dict(entry.identity[1]).get("topic"), *shown)
    return any(isinstance(name, str) and matches(topic, name) for name in names)


def _filter_of(query: FindingQuery, name: str) -> FindingFilter:
    return FindingFilter(
        only_ended=query.state is StateFilter.ENDED,
        rule_id=query.rule,
        severity=query.severity,
        topic=query.topic,
        verdict=_verdict(query.verdict),
        after=decode_time_cursor(query.cursor, name),
    )


def _verdict(word: VerdictWord | None) -> Verdict | None:
    return None if word is None else Verdict[word.name]


def open_page(
    open_list: OpenList, state: ServiceState, query: FindingQuery, name: str
) -> Page[Finding]:
    """Return a page of the open findings, newest first.

    Raises:
        ProblemError: the cursor is another list's, or no round has ended yet.
    """
    after = decode_cursor(query.cursor, name, int, str)
    page = open_list.newest_first(state).page(
        after=after,
        limit=query.limit,
        newest_first=True,
        is_shown=lambda entry: _is_queried(entry, query),
    )
    cluster_id = cluster_id_of(state)
    return Page([from_memory(entry, cluster_id) for entry in page.items], page.last)


def cluster_id_of(state: ServiceState) -> str | None:
    """Return the cluster id that the brokers report; None before the first observation."""
    return None if state.snapshot is None else state.snapshot.cluster_id or None


async def stored_rows(sources: Sources, filters: FindingFilter, limit: int) -> Page[PastFinding]:
    """Return a page of stored findings, newest first."""

    def key(past: PastFinding) -> Key:
        ended_at = past.finding.ended_at if filters.only_ended else None
        return microseconds(ended_at or past.finding.since), past.finding.id

    rows = await sources.in_database(lambda: sources.history.page(filters, limit + 1))
    return first_of(rows, limit, key)


def _stored_page(rows: Page[PastFinding]) -> Page[Finding]:
    return Page([from_storage(past) for past in rows.items], rows.last)


async def finding_detail(
    sources: Sources, open_list: OpenList, rule_id: str, digits: str, missing: str
) -> Callable[[], FindingDetail]:
    """Return the view of a finding from memory or the database, with its transitions if they can be read.

    Raises:
        ProblemError: there is no such finding; its detail is `missing`.
    """
    state = sources.state
    entry = await sources.answers.compute(lambda: open_list.find(state, rule_id, digits))
    try:
        stored = await sources.in_database(lambda: _stored(sources.history, rule_id, digits))
    except StoreError as exc:
        if entry is None:
            raise
        return partial(_open_detail, state, entry, None, str(exc))
    if entry is not None:
        is_it = stored is not None and cluster_id_of(state) in (None, stored[0].cluster_id)
        steps = stored[1] if stored is not None and is_it else None
        return partial(_open_detail, state, entry, steps, None if is_it else "it is not stored yet")
    past, steps = existing(stored, missing)
    return lambda: _detail(stored_stamp(state), from_storage(past), steps, None)


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
