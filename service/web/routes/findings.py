"""Findings: the open ones from memory, all others from the database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from rules.errors import StoreError
from rules.facts.last_look import microseconds
from rules.open_findings import OpenFinding
from rules.verdict import Verdict
from service.latest import Look
from service.storage.history import PastFinding, Wanted
from service.web import models
from service.web.finding_views import (
    find_open,
    from_memory,
    from_storage,
    parse_id,
    transition_view,
)
from service.web.models import VerdictWord
from service.web.paging import Key, Page, decode_cursor, page_of
from service.web.ports import History, Sources
from service.web.problems import ProblemError, not_found, unavailable
from service.web.queries import FindingQuery, NoQuery, StateFilter
from service.web.stamps import continued, stamp, stored_stamp

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_US: Final = microseconds(datetime(9999, 1, 1, tzinfo=UTC))
NO_FINDING: Final = "there is no such finding"


def findings_router(sources: Sources) -> APIRouter:
    """Return the routes of findings."""
    router = APIRouter(tags=["findings"])

    @router.get("/findings")
    async def list_findings(
        request: Request, response: Response, query: Annotated[FindingQuery, Query()]
    ) -> models.FindingPage:
        """Return findings, newest first: by their end if only ended ones are asked for."""
        look = sources.look
        if query.state is StateFilter.OPEN:
            page, stamped = _open_page(look, query), stamp(look)
        else:
            page, stamped = await _stored_page(sources, query), stored_stamp(look)
        following = continued(request, response, _list_name(query), page.last)
        return models.FindingPage(
            **stamped, items=list(page.items), next=following, storage=look.keeping.state
        )

    @router.get("/findings/{finding_id}")
    async def get_finding(
        finding_id: Annotated[str, Path(examples=["partition_offline-0123456789abcdef"])],
        _query: Annotated[NoQuery, Query()],
    ) -> models.FindingDetail:
        """Return a finding with the last 1000 changes of its verdict, oldest first."""
        name = parse_id(finding_id)
        if name is None:
            raise not_found(NO_FINDING)
        return await _detail(sources, *name)

    return router


def _list_name(query: FindingQuery) -> str:
    return f"findings-{query.state}"


# ------------------------------------------------------------------ from memory
def _open_page(look: Look, query: FindingQuery) -> Page[models.Finding]:
    after = decode_cursor(query.cursor, _list_name(query), int, str)
    if not look.rounds and not look.open_findings:
        raise unavailable("no round has been made yet")
    page = page_of(
        _asked(look.open_findings.values(), query),
        _open_key,
        after=after,
        limit=query.limit,
        newest_first=True,
    )
    cluster_id = _cluster_id(look)
    return Page([from_memory(entry, cluster_id) for entry in page.items], page.last)


def _asked(entries: Iterable[OpenFinding], query: FindingQuery) -> Iterable[OpenFinding]:
    verdict = _verdict(query.verdict)
    for entry in entries:
        if query.rule not in (None, entry.identity[0]):
            continue
        if query.severity in (None, entry.severity) and verdict in (None, entry.verdict):
            yield entry


def _open_key(entry: OpenFinding) -> Key:
    return microseconds(entry.since), json.dumps(entry.identity)


# ------------------------------------------------------------------ from the database
async def _stored_page(sources: Sources, query: FindingQuery) -> Page[models.Finding]:
    wanted = Wanted(
        only_ended=query.state is StateFilter.ENDED,
        rule_id=query.rule,
        severity=query.severity,
        verdict=_verdict(query.verdict),
        after=_after(decode_cursor(query.cursor, _list_name(query), int, int)),
    )
    found = await sources.in_database(lambda: sources.history.page(wanted, query.limit + 1))
    shown = found[: query.limit]
    last = _stored_key(shown[-1], query.state) if len(found) > query.limit else None
    return Page([from_storage(past) for past in shown], last)


def _stored_key(past: PastFinding, state: StateFilter) -> Key:
    moment = past.finding.ended_at if state is StateFilter.ENDED else None
    return microseconds(moment or past.finding.since), past.finding.id


def _after(key: Key | None) -> tuple[datetime, int] | None:
    if key is None:
        return None
    if key[0] > LAST_US:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the cursor does not belong to this list")
    return EPOCH + timedelta(microseconds=key[0]), key[1]


# ------------------------------------------------------------------ one finding
async def _detail(sources: Sources, rule_id: str, digits: str) -> models.FindingDetail:
    """Return what memory knows, and the transitions if the database can tell them."""
    look = sources.look
    entry = await sources.in_thread(lambda: find_open(look.open_findings, rule_id, digits))
    try:
        stored = await sources.in_database(lambda: _stored(sources.history, rule_id, digits))
    except StoreError as exc:
        if entry is None:
            raise
        return _open_detail(look, entry, None, str(exc))
    if entry is not None:
        is_it = stored is not None and _cluster_id(look) in (None, stored[0].cluster_id)
        steps = stored[1] if stored is not None and is_it else None
        return _open_detail(look, entry, steps, None if is_it else "it is not stored yet")
    if stored is None:
        raise not_found(NO_FINDING)
    past, steps = stored
    return models.FindingDetail(
        **stored_stamp(look), finding=from_storage(past), transitions=steps, trouble=None
    )


def _open_detail(
    look: Look, entry: OpenFinding, steps: list[models.Transition] | None, trouble: str | None
) -> models.FindingDetail:
    finding = from_memory(entry, _cluster_id(look))
    return models.FindingDetail(**stamp(look), finding=finding, transitions=steps, trouble=trouble)


def _stored(
    history: History, rule_id: str, digits: str
) -> tuple[PastFinding, list[models.Transition]] | None:
    past = history.one(rule_id, digits)
    if past is None:
        return None
    return past, [transition_view(step) for step in history.transitions(past.finding.id)]


def _cluster_id(look: Look) -> str | None:
    return None if look.snapshot is None else look.snapshot.cluster_id or None


def _verdict(word: VerdictWord | None) -> Verdict | None:
    return None if word is None else Verdict[word.name]
