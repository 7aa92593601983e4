"""Fields of the lag of a commit in seconds, and why there is none."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.time_lag import WhyAbsent

TimeLag = Annotated[
    float | None,
    Field(
        description="For how long the oldest unread offset has been readable; 0 if none is unread"
    ),
]
LowerBound = Annotated[
    float | None,
    Field(
        description="Lower bound; only where the offset became readable before the oldest stored observation"
    ),
]
WhyNoTimeLag = Annotated[
    WhyAbsent | None,
    Field(
        description="Why there is no lag in seconds; null if there is one, and before the first round"
    ),
]
