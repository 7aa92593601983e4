"""Parameters of the list of changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.core.bodies import Timestamp
from service.api.core.queries import PageQuery, Word


class AuditQuery(PageQuery):
    """Which changes."""

    who: Word | None = None
    what: Annotated[Word | None, Field(examples=["silence.create"])] = None
    target: Word | None = None
    since: Annotated[Timestamp | None, Field(description="From here on")] = None
