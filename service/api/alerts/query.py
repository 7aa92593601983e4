"""Parameters of the list of alerts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.api.core.queries import PageQuery, Word, require_known_rule


class AlertFilter(StrEnum):
    """Which alerts, by their state."""

    ACTIVE = "active"
    PENDING = AlertState.PENDING.value
    FIRING = AlertState.FIRING.value
    RESOLVED = AlertState.RESOLVED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[AlertState]:
        """Return the states that the filter lets through."""
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
    rule: Annotated[str | None, AfterValidator(require_known_rule)] = None
    receiver: Annotated[
        Word | None, Field(description="Only alerts that the current routes send to this receiver")
    ] = None
