"""A watcher over observations that are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from rules.errors import UnreachableError
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.lag_objectives import LagObjective
from rules.facts.scrapes import Scrapes
from rules.facts.snapshot import Snapshot
from rules.question import Question
from service.observe.cluster_reader import Scope
from service.observe.feeds import LogFeed
from service.observe.watch import Remembered, Watcher
from tests.factories import (
    NOON,
    snapshot,
)

INTERVAL = 15.0


class Script:
    """A source that shows prepared rounds in order; None is a round that cannot be made."""

    def __init__(self, *observations: dict[str, Any] | None, began: datetime = NOON) -> None:
        self.observations = list(observations)
        self.now = began
        self.uptime = 1000.0
        self.queries: list[tuple[Question, ...]] = []  # what each round was given to answer

    def utc_now(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.uptime

    def pass_time(self, *, clock_set_by: timedelta = timedelta(0)) -> None:
        """Let one interval pass; somebody may set the wall clock meanwhile."""
        self.uptime += INTERVAL
        self.now += timedelta(seconds=INTERVAL) + clock_set_by

    def read(self, scope: Scope) -> Snapshot:
        """Show the next round."""
        self.queries.append(scope.questions)
        observation = self.observations.pop(0)
        if observation is None:
            raise UnreachableError("no bootstrap address answered: 127.0.0.1:9: connection refused")
        return snapshot(taken_at=self.now, **observation)


def watcher_of(  # noqa: PLR0917 - each has a default
    script: Script,
    remembered: Remembered | None = None,
    light_observations: Callable[[], AtRiskObservations | None] = lambda: None,
    feeds: Sequence[LogFeed] = (),
    scraped: Callable[[], Scrapes] = Scrapes.unread,
    objectives: Sequence[LagObjective] = (),
) -> Watcher:
    return Watcher(
        "default",
        script,
        Scope(),
        utc_now=script.utc_now,
        monotonic=script.monotonic,
        remembered=remembered,
        light_observations=light_observations,
        feeds=feeds,
        scrapes=scraped,
        objectives=objectives,
    )
