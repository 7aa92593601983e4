"""How the lag of a commit in seconds is shown, and why there is none."""

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
    Field(description="At least so long; only where it was before anything that is remembered"),
]
WhyNoTimeLag = Annotated[
    WhyAbsent | None,
    Field(description="Why there is no lag in seconds; null if there is one, and before a round"),
]
