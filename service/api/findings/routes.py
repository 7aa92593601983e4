"""Routes of findings: open ones from memory, all others from the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator

from rules.open_findings import OpenFinding
from rules.verdict import Severity, Verdict
from service.api.core.models import VerdictWord
from service.api.core.paging import Paging, decode_time_cursor
from service.api.core.ports import Sources
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
from service.api.findings.lists import finding_detail, open_findings, open_page, stored_page
from service.api.findings.views import FindingDetail, FindingPage, parse_id
from service.storage.findings.history import FindingFilter

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


def findings_router(sources: Sources) -> APIRouter:
    """Return the routes of findings."""
    router = APIRouter(tags=["findings"])

    @router.get("/findings")
    async def list_findings(paging: Paging, query: Annotated[FindingQuery, Query()]) -> FindingPage:
        """Return findings, newest first: by their end if only ended ones are requested."""
        state, name = sources.state, f"findings-{query.state}"
        if query.state is StateFilter.OPEN:
            page = open_page(state, query, name, _select_open(open_findings(state), query))
            stamped = stamp(state)
        else:
            page = await stored_page(sources, _filter_of(query, name), query.limit)
            stamped = stored_stamp(state)
        storage = state.persistence.state
        return FindingPage(**stamped, **paging.page(name, page), storage=storage)

    @router.get("/findings/{finding_id}")
    async def get_finding(
        finding_id: Annotated[str, Path(examples=["partition_offline-0123456789abcdef"])],
        _query: NoParameters,
    ) -> FindingDetail:
        """Return a finding with the last 1000 changes of its verdict, oldest first."""
        name = existing(parse_id(finding_id), NO_FINDING)
        return await finding_detail(sources, *name, NO_FINDING)

    return router


def _select_open(entries: Iterable[OpenFinding], query: FindingQuery) -> Iterable[OpenFinding]:
    verdict = _verdict(query.verdict)
    for entry in entries:
        if query.rule not in (None, entry.identity[0]) or not _is_of(query.topic, entry):
            continue
        if query.severity in (None, entry.severity) and verdict in (None, entry.verdict):
            yield entry


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
