"""Parameters of the list of sequences."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.api.core.paging import INT64_MAX
from service.api.core.queries import PageQuery, PartitionNumber, Pattern, StateFilter


class SequenceQuery(PageQuery):
    """Which events; those that are known to match are shown."""

    state: Annotated[
        StateFilter, Field(description="ended: for a day, the last 1000; nothing more is rejected")
    ] = StateFilter.OPEN
    class_: Annotated[SequenceClass | None, Field(alias="class")] = None
    phase: Phase | None = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    producer_id: Annotated[int | None, Field(ge=0, le=INT64_MAX)] = None
