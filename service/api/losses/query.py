"""Parameters of the list of losses."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from service.api.core.queries import PageQuery, PartitionNumber, Pattern, StateFilter
from service.api.losses.models import LossClass


class LossQuery(PageQuery):
    """Which losses; those that are known to match are shown."""

    state: Annotated[
        StateFilter, Field(description="open: from memory; ended, all: from the database")
    ] = StateFilter.OPEN
    class_: Annotated[LossClass | None, Field(alias="class")] = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    group: Annotated[
        Pattern | None,
        Field(description="The group that committed beyond the log end, or one of `groups_beyond`"),
    ] = None
    since: Annotated[
        AwareDatetime | None,
        Field(
            description="Only what last happened then or later",
            examples=["2026-01-31T03:00:00Z"],
        ),
    ] = None
