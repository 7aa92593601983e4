"""The audit trail: who changed what, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.api.core.bodies import Timestamp
from service.api.core.models import Paged
from service.api.core.paging import Paging, decode_row_cursor, first_of
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Word
from service.api.core.stamps import stamp_of
from service.storage.changes.audit import AuditFilter
from service.views.model import Model

LIST: Final = "audit"


class AuditEntry(Model):
    """One change; what is written here is never altered."""

    id: int
    at: datetime
    who: Annotated[str, Field(description="Name of the token")]
    what: Annotated[str, Field(examples=["silence.create"])]
    target: str
    why: str
    details: dict[str, Any]
    cluster: str | None
    """Name of the cluster whose service was asked; null: an earlier version did not record it"""


class AuditPage(Paged[AuditEntry]):
    """Changes, newest first."""


class AuditQuery(PageQuery):
    """Which changes."""

    cluster: Word | None = None
    who: Word | None = None
    what: Annotated[Word | None, Field(examples=["silence.create"])] = None
    target: Word | None = None
    since: Annotated[Timestamp | None, Field(description="From here on")] = None


def audit_router(sources: Sources) -> APIRouter:
    """Return the route of the audit trail."""
    router = APIRouter(tags=["audit"])

    @router.get("/audit", response_model=AuditPage)
    async def list_audit(paging: Paging, query: Annotated[AuditQuery, Query()]) -> Response:
        """Return changes that users made in all clusters of the database, newest first; needs scope admin."""
        filters = AuditFilter(
            cluster=query.cluster,
            who=query.who,
            what=query.what,
            target=query.target,
            since=query.since,
            before=decode_row_cursor(query.cursor, LIST),
        )
        rows = await sources.in_database(lambda: sources.admin.audit.page(filters, query.limit + 1))
        page = first_of(rows, query.limit, lambda row: (row.id,))
        return await sources.answers.render(
            lambda: AuditPage(**stamp_of(sources.utc_now()), **paging.page(LIST, page)), paging
        )

    return router
