"""Losses: the findings of the rules that tell lost records, read as such.

Open ones come from memory and can be asked for while the database is away; all others come from
the database, as does each time that one of them happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from rules.open_findings import OpenFinding
from service.storage.findings import storable, storable_evidence, storable_text
from service.storage.history import Wanted
from service.web.finding_lists import finding_detail, open_page, stored_after, stored_page
from service.web.finding_views import parse_id
from service.web.globs import matches
from service.web.loss_models import LossDetail, LossEvent, LossPage
from service.web.loss_query import LossQuery
from service.web.loss_views import CLASS_OF, RULE_OF, event_of, groups_in, loss_of
from service.web.models import Transition
from service.web.ports import Sources
from service.web.problems import not_found
from service.web.queries import NoQuery, StateFilter
from service.web.stamps import continued, stamp, stored_stamp

NO_LOSS: Final = "there is no such loss"


def losses_router(sources: Sources) -> APIRouter:
    """Return the routes of losses."""
    router = APIRouter(tags=["losses"])

    @router.get("/losses")
    async def list_losses(
        request: Request, response: Response, query: Annotated[LossQuery, Query()]
    ) -> LossPage:
        """Return losses, newest first: by their end if only ended ones are asked for.

        One that happened again has the facts of the last time; `/losses/{id}` has them all. Filters
        show what is known to match.
        """
        look, name = sources.look, f"losses-{query.state}"
        if query.state is StateFilter.OPEN:
            page = open_page(look, query, name, _asked(look.open_findings.values(), query))
            stamped = stamp(look)
        else:
            page = await stored_page(sources, _wanted(query, name), query.limit)
            stamped = stored_stamp(look)
        following = continued(request, response, name, page.last)
        items = [loss_of(finding) for finding in page.items]
        return LossPage(**stamped, items=items, next=following, storage=look.keeping.state)

    @router.get("/losses/{loss_id}")
    async def get_loss(
        loss_id: Annotated[str, Path(examples=["committed_records_lost-0123456789abcdef"])],
        _query: Annotated[NoQuery, Query()],
    ) -> LossDetail:
        """Return a loss with each time that it happened, oldest first."""
        name = parse_id(loss_id)
        if name is None or name[0] not in CLASS_OF:
            raise not_found(NO_LOSS)
        found = await finding_detail(sources, *name, NO_LOSS)
        return LossDetail(
            as_of=found.as_of,
            is_current=found.is_current,
            loss=loss_of(found.finding),
            events=_events(found.transitions),
            trouble=found.trouble,
            storage=sources.look.keeping.state,
        )

    return router


def _events(steps: list[Transition] | None) -> list[LossEvent] | None:
    if steps is None:
        return None
    return [event for step in steps if (event := event_of(step)) is not None]


def _asked(entries: Iterable[OpenFinding], query: LossQuery) -> Iterable[OpenFinding]:
    for entry in entries:
        class_ = CLASS_OF.get(entry.identity[0])
        if class_ is None or query.class_ not in (None, class_):
            continue
        is_asked = query.since is None or entry.last_breach_at >= query.since
        if is_asked and _is_at(entry, query):
            yield entry


def _is_at(entry: OpenFinding, query: LossQuery) -> bool:
    """Tell whether a loss is at a place: by the names that are stored, as in the database."""
    labels = storable(dict(entry.identity[1]))
    if query.partition is not None and labels.get("partition") != str(query.partition):
        return False
    if query.topic is not None and not _any_matches(query.topic, [labels.get("topic")]):
        return False
    if query.group is None:
        return True
    groups = [labels.get("group"), *groups_in(storable_evidence(entry.evidence))]
    return _any_matches(query.group, groups)


def _any_matches(pattern: str, names: Iterable[str | None]) -> bool:
    stored = storable_text(pattern)
    return any(name is not None and matches(stored, name) for name in names)


def _wanted(query: LossQuery, name: str) -> Wanted:
    rules = RULE_OF.values() if query.class_ is None else [RULE_OF[query.class_]]
    return Wanted(
        only_ended=query.state is StateFilter.ENDED,
        rule_ids=frozenset(rules),
        topic=query.topic,
        partition=query.partition,
        group=query.group,
        breached_since=query.since,
        after=stored_after(query, name),
    )
