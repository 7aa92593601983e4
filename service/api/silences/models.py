"""Silences, as the API answers and takes them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import Field

from service.alerting.alerts.silences import SilenceState
from service.api.core.bodies import Body, MatcherText, Timestamp, Why
from service.api.core.models import Paged, Stamped
from service.api.core.queries import PageQuery
from service.views.model import Model


class Silence(Model):
    """A silence: which alerts it mutes, when, and why."""

    id: UUID
    state: SilenceState
    matchers: Annotated[str, Field(description="As Alertmanager prints them")]
    starts_at: datetime
    ends_at: Annotated[datetime, Field(description="Exclusive")]
    created_by: str
    comment: str
    version: Annotated[int, Field(description="Grows with every change; the ETag is made of it")]
    created_at: datetime
    updated_at: datetime


class SilencePage(Paged[Silence]):
    """Silences, those that end last first."""


class SilenceDetail(Stamped):
    """A silence; the header ETag says of which version."""

    silence: Silence


class SilenceBody(Body):
    """A new silence or an edit of one; the caller becomes the author of a new one."""

    matchers: MatcherText
    starts_at: Timestamp | None = None
    """null: now, or unchanged in an edit"""
    ends_at: Timestamp
    comment: Why
    all: bool = False
    """Confirm that the matchers may mute every alert"""


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

    state: SilenceFilter = SilenceFilter.CURRENT
    """current: pending or active"""
