"""Which parameters the list of sequences takes."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.web.paging import INT64_MAX
from service.web.queries import PageQuery, Pattern, StateFilter

MAX_PARTITION: Final = 2**31 - 1


class SequenceQuery(PageQuery):
    """Which events; those that are known to match are shown."""

    state: Annotated[
        StateFilter, Field(description="ended: for a day, the last 1000; nothing more is refused")
    ] = StateFilter.OPEN
    class_: Annotated[SequenceClass | None, Field(alias="class")] = None
    phase: Phase | None = None
    topic: Pattern | None = None
    partition: Annotated[int | None, Field(ge=0, le=MAX_PARTITION)] = None
    producer_id: Annotated[int | None, Field(ge=0, le=INT64_MAX)] = None
