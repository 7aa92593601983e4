"""Silences, as the API answers and takes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from service.alerting.alerts.silences import SilenceState
from service.api.core.bodies import Body, MatcherText, Timestamp, Why
from service.api.core.models import Model, NextCursor, Stamped


class Silence(Model):
    """Who does not want to be told of what, from when until when, and why."""

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


class SilencePage(Stamped):
    """Silences, those that end last first."""

    items: list[Silence]
    next: NextCursor


class SilenceDetail(Stamped):
    """A silence; the header ETag says of which version."""

    silence: Silence


class SilenceBody(Body):
    """What a silence shall be; who sends it becomes its author."""

    matchers: MatcherText
    starts_at: Annotated[Timestamp | None, Field(description="null: now, or as it was")] = None
    ends_at: Timestamp
    comment: Why
    all: Annotated[
        bool, Field(description="Say that matchers are meant that hold back every alert")
    ] = False
