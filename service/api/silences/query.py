"""Parameters of the list of silences."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from service.alerting.alerts.silences import SilenceState
from service.api.core.queries import PageQuery


class SilenceFilter(StrEnum):
    """Which silences, by their state."""

    CURRENT = "current"
    PENDING = SilenceState.PENDING.value
    ACTIVE = SilenceState.ACTIVE.value
    EXPIRED = SilenceState.EXPIRED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[SilenceState]:
        """Return the states that the filter lets through."""
        match self:
            case SilenceFilter.CURRENT:
                return frozenset({SilenceState.PENDING, SilenceState.ACTIVE})
            case SilenceFilter.ALL:
                return frozenset(SilenceState)
            case _:
                return frozenset({SilenceState(self.value)})


class SilenceQuery(PageQuery):
    """Which silences."""

    state: Annotated[SilenceFilter, Field(description="current: pending or active")] = (
        SilenceFilter.CURRENT
    )
