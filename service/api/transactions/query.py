"""Parameters of the list of open transactions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.transactions.classes import TransactionClass
from service.api.core.queries import PageQuery, Pattern


class TransactionQuery(PageQuery):
    """Which open transactions; those that are known to match are shown."""

    class_: Annotated[TransactionClass | None, Field(alias="class")] = None
    transactional_id: Pattern | None = None
    topic: Annotated[Pattern | None, Field(description="Open on a partition of such a topic")] = (
        None
    )
    group: Annotated[Pattern | None, Field(description="Blocks such a group")] = None
