"""Which parameters the list of changes takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.core.bodies import Moment
from service.api.core.queries import PageQuery, Word


class AuditQuery(PageQuery):
    """Which changes."""

    who: Word | None = None
    what: Annotated[Word | None, Field(examples=["silence.create"])] = None
    target: Word | None = None
    since: Annotated[Moment | None, Field(description="From here on")] = None
