"""Objectives of time lag, by group."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.facts.lag_objectives import LagObjective
from service.settings.values import Group, Tables, check_pattern

Pattern = Annotated[str, AfterValidator(check_pattern)]


class LagObjectiveSettings(Group):
    """One objective."""

    group: Pattern
    """Groups that it is for: a regular expression that matches the whole name."""

    topic: Pattern | None = None
    """Topics whose lag counts, in the same way. Default: all that the group reads."""

    seconds: Annotated[float, Field(gt=0, le=7 * 86_400)]
    """How many seconds the group may be behind."""

    share: Annotated[float, Field(ge=0.5, lt=1)] = 0.99
    """For which share of the time."""


class LagSettings(Group):
    """How far behind groups may be; rule lag_objective_burning judges by it."""

    objectives: Annotated[
        Tables[LagObjectiveSettings],
        Field(examples=[[{"group": "billing-.*", "seconds": 60.0, "share": 0.99}]]),
    ] = ()
    """List of tables, as [[lag.objectives]] in the file or as a JSON list in the environment: group, topic,
    seconds, share. The first one whose group matches a group's whole name holds for it; at most 1,000 groups are
    judged. Default: none, as nobody else can say how far behind a pipeline may be."""

    def facts(self) -> tuple[LagObjective, ...]:
        """Return the objectives as rules take them."""
        return tuple(
            LagObjective(
                groups=re.compile(each.group),
                topics=None if each.topic is None else re.compile(each.topic),
                seconds=each.seconds,
                share=each.share,
            )
            for each in self.objectives
        )
