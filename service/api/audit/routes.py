"""The audit trail: who changed what, and why."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from service.api.audit import models
from service.api.audit.models import AuditQuery
from service.api.core.changing import stamp_of
from service.api.core.paging import decode_cursor
from service.api.core.ports import Sources
from service.api.core.stamps import link_next_page
from service.storage.changes.audit import AuditFilter, AuditRow

LIST: Final = "audit"


def audit_router(sources: Sources) -> APIRouter:
    """Return the route of the audit trail."""
    router = APIRouter(tags=["audit"])

    @router.get("/audit")
    async def list_audit(
        request: Request, response: Response, query: Annotated[AuditQuery, Query()]
    ) -> models.AuditPage:
        """Return changes that users made, newest first; needs scope admin."""
        key = decode_cursor(query.cursor, LIST, int)
        filters = AuditFilter(
            who=query.who,
            what=query.what,
            target=query.target,
            since=query.since,
            before=None if key is None else key[0],
        )
        rows = await sources.in_database(lambda: sources.admin.audit.page(filters, query.limit + 1))
        shown = rows[: query.limit]
        last = (shown[-1].id,) if len(rows) > query.limit else None
        following = link_next_page(request, response, LIST, last)
        items = [_view(row) for row in shown]
        return models.AuditPage(**stamp_of(sources.utc_now()), items=items, next=following)

    return router


def _view(row: AuditRow) -> models.AuditEntry:
    fields = {name: getattr(row, name) for name in models.AuditEntry.model_fields}
    return models.AuditEntry(**fields | {"details": dict(row.details)})
