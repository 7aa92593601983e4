"""Route of the catalogue of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from rules.catalogue.all_rules import EVERY, Declared
from rules.pages import sections_of
from rules.verdict import Kind, Severity
from service.api.core.models import NextCursor
from service.api.core.paging import Paging, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.queries import PageParameters
from service.views.model import Model


class Rule(Model):
    """A rule of the catalogue."""

    id: str
    summary: str
    severity: Severity
    milder: dict[str, Severity]
    """Reasons for which a breach is less bad"""
    kind: Kind
    for_seconds: float
    is_critical: bool
    reasons: list[str]
    why_it_matters: Annotated[str | None, Field(description="Markdown")]
    runbook: Annotated[str | None, Field(description="What to do about a breach, Markdown")]


class RulePage(Model):
    """Rules in the order in which they judge."""

    items: list[Rule]
    next: NextCursor


def rules_router(sources: Sources) -> APIRouter:
    """Return the route of the catalogue."""
    router = APIRouter(tags=["rules"])
    every = catalogue()
    place = {rule.id: number for number, rule in enumerate(every)}

    @router.get("/rules", response_model=RulePage)
    async def list_rules(paging: Paging, query: PageParameters) -> Response:
        """Return all rules, in the order in which they judge."""
        after = decode_cursor(query.cursor, "rules", int)
        page = page_of(every, lambda rule: (place[rule.id],), after=after, limit=query.limit)
        return await sources.answers.render(lambda: RulePage(**paging.page("rules", page)), paging)

    return router


def catalogue() -> Sequence[Rule]:
    """Return all rules with their declarations, why they matter, and their runbooks."""
    return [_view(rule) for rule in EVERY]


def _view(rule: Declared) -> Rule:
    meta, sections = rule.meta, sections_of(rule.text)
    return Rule(
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
