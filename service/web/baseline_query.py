"""Which parameters the lists of baselines take."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from rules.baseline.series import Metric
from service.web.bodies import Moment
from service.web.queries import NoQuery, PageQuery, Pattern

MAX_PARTITION: Final = 2**31 - 1

At = Annotated[
    Moment | None,
    Field(description="For which time, by default now", examples=["2026-01-31T03:00:00Z"]),
]


class SeriesQuery(PageQuery):
    """Which series."""

    metric: Metric | None = None
    topic: Pattern | None = None
    partition: Annotated[int | None, Field(ge=0, le=MAX_PARTITION)] = None
    group: Pattern | None = None
    at: At = None


class AtQuery(NoQuery):
    """For which time."""

    at: At = None
