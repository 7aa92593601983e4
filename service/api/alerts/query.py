"""Which parameters the lists of alerts, silences, deliveries and changes take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.alerting.alerts.silences import SilenceState
from service.api.core.bodies import Moment, no_controls
from service.api.core.globs import MAX_PATTERN
from service.api.core.queries import PageQuery, known_rule
from service.api.deliveries.models import DeliveryState

Word = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN), AfterValidator(no_controls)]


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


class SilenceFilter(StrEnum):
    """Which silences, by their state."""

    CURRENT = "current"
    PENDING = SilenceState.PENDING.value
    ACTIVE = SilenceState.ACTIVE.value
    EXPIRED = SilenceState.EXPIRED.value
    ALL = "all"

    @property
    def states(self) -> frozenset[SilenceState]:
        """Return the states that are shown."""
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


class DeliveryQuery(PageQuery):
    """Which deliveries."""

    receiver: Word | None = None
    state: DeliveryState | None = None


class AuditQuery(PageQuery):
    """Which changes."""

    who: Word | None = None
    what: Annotated[Word | None, Field(examples=["silence.create"])] = None
    target: Word | None = None
    since: Annotated[Moment | None, Field(description="From here on")] = None
