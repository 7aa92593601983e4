"""Parameters of the lists of baselines."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.baseline.series import Metric
from service.api.core.bodies import Timestamp
from service.api.core.queries import NoQuery, PageQuery, PartitionNumber, Pattern

At = Annotated[
    Timestamp | None,
    Field(description="For which time, by default now", examples=["2026-01-31T03:00:00Z"]),
]


class SeriesQuery(PageQuery):
    """Which series."""

    metric: Metric | None = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    group: Pattern | None = None
    at: At = None


class AtQuery(NoQuery):
    """For which time."""

    at: At = None
