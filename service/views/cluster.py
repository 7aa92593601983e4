"""Brokers, groups and gaps of a snapshot, each as one model for the API and the command line."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import GroupType
from service.views.model import Model


class Broker(Model):
    """A registered broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class GroupDescription(Model):
    """A group as its coordinator describes it."""

    group: Annotated[str, Field(validation_alias="group_id")]
    type: Annotated[GroupType, Field(validation_alias="group_type")]
    state: str | None
    members: Annotated[int | None, Field(validation_alias="member_count")]
    coordinator: int | None
    epoch: Annotated[
        int | None, Field(description="KIP-848: grows with each change of members or subscriptions")
    ]
    assignor: Annotated[str | None, Field(description="Who decides which member owns what")]


class SnapshotGap(Model):
    """Something that an observation did not see, and why."""

    what: str
    why: str
    cause: GapCause
    scope: GapScope
    broker_id: int | None
    topic: str | None
    partition: int | None
    group: str | None
