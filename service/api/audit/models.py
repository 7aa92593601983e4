"""Who changed what, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from service.api.core.bodies import Timestamp
from service.api.core.models import Model, NextCursor, Stamped
from service.api.core.queries import PageQuery, Word


class AuditEntry(Model):
    """One change; what is written here is never altered."""

    id: int
    at: datetime
    who: Annotated[str, Field(description="Name of the token")]
    what: Annotated[str, Field(examples=["silence.create"])]
    target: str
    why: str
    details: dict[str, Any]


class AuditPage(Stamped):
    """Changes, newest first."""

    items: list[AuditEntry]
    next: NextCursor


class AuditQuery(PageQuery):
    """Which changes."""

    who: Word | None = None
    what: Annotated[Word | None, Field(examples=["silence.create"])] = None
    target: Word | None = None
    since: Annotated[Timestamp | None, Field(description="From here on")] = None
