"""Which parameters the list of alerts takes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.api.core.queries import PageQuery, Word, known_rule


class AlertFilter(StrEnum):
    """Which alerts, by their state."""

    ACTIVE = "active"
    PENDING = AlertState.PENDING.value
    FIRING = AlertState.FIRING.value
    RESOLVED = AlertState.RESOLVED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[AlertState]:
        """Return the states that are shown."""
        match self:
            case AlertFilter.ACTIVE:
                return frozenset({AlertState.PENDING, AlertState.FIRING})
            case AlertFilter.ALL:
                return frozenset(AlertState)
            case _:
                return frozenset({AlertState(self.value)})


class AlertQuery(PageQuery):
    """Which alerts."""

    state: Annotated[AlertFilter, Field(description="active: pending or firing")] = (
        AlertFilter.ACTIVE
    )
    severity: Severity | None = None
    rule: Annotated[str | None, AfterValidator(known_rule)] = None
    receiver: Annotated[
        Word | None, Field(description="Told to this receiver, by the routes of now")
    ] = None
