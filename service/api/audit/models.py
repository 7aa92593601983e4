"""Who changed what, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from service.api.core.models import Model, NextCursor, Stamped


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
