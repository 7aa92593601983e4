"""Route of the catalogue of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from rules.catalogue.all_rules import EVERY, Declared
from rules.pages import sections_of
from service.api.core import models
from service.api.core.paging import decode_cursor, page_of
from service.api.core.queries import PageQuery
from service.api.core.stamps import link_next_page


def rules_router() -> APIRouter:
    """Return the route of the catalogue."""
    router = APIRouter(tags=["rules"])
    every = catalogue()
    place = {rule.id: number for number, rule in enumerate(every)}

    @router.get("/rules")
    async def list_rules(
        request: Request, response: Response, query: Annotated[PageQuery, Query()]
    ) -> models.RulePage:
        """Return all rules, in the order in which they judge."""
        after = decode_cursor(query.cursor, "rules", int)
        page = page_of(every, lambda rule: (place[rule.id],), after=after, limit=query.limit)
        following = link_next_page(request, response, "rules", page.last)
        return models.RulePage(items=list(page.items), next=following)

    return router


def catalogue() -> Sequence[models.Rule]:
    """Return all rules with their declarations, why they matter, and their runbooks."""
    return [_view(rule) for rule in EVERY]


def _view(rule: Declared) -> models.Rule:
    meta, sections = rule.meta, sections_of(rule.text)
    return models.Rule(
        id=meta.rule_id,
        summary=meta.summary,
        severity=meta.severity,
        milder=dict(meta.milder),
        kind=meta.kind,
        for_seconds=meta.for_.total_seconds(),
        is_critical=meta.is_critical,
        reasons=[str(why) for why in rule.reasons],
        why_it_matters=sections.get("Why it matters"),
        runbook=sections.get("Runbook"),
    )
