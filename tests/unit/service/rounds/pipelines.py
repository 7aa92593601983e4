"""A service's rounds over observations that are given, with a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rules.errors import StoreError
from rules.facts.scrapes import EndpointState
from rules.names import ENDED_METRICS
from rules.open_findings import Step
from service.metrics.exposition import Exposition
from service.observe.cluster_reader import Scope
from service.observe.feeds import LogFeed
from service.observe.watch import Watcher
from service.rounds.latest import Latest, ServiceState
from service.rounds.persistence import RoundWriter
from service.rounds.pipeline import Pipeline, RiskPort, RoundResult
from tests.factories import (
    NOON,
    offsets,
)
from tests.fakes import MemoryStore, ScriptedSource

STUCK: dict[str, Any] = {"offsets": offsets(log_end_offset=[100, 130, 100])}
QUIET: dict[str, Any] = {}
AWAY = StoreError("database x at y cannot be reached: connection refused", retryable=True)


class Service:
    """A pipeline over a script and a store."""

    def __init__(
        self,
        store: MemoryStore,
        *observations: dict[str, Any] | None,
        after_rounds: int = 0,
        risk: RiskPort | None = None,
        endpoints: Callable[[], tuple[EndpointState, ...]] = tuple,
        feeds: Sequence[LogFeed] = (),
    ) -> None:
        self.source = ScriptedSource(*observations)
        self.source.elapsed += after_rounds * 15.0
        self.store = store
        self.exposition = Exposition()
        self.latest = Latest(
            ServiceState(cluster="default", version="0.1.0", started_at=NOON, interval_seconds=15.0)
        )
        watcher = Watcher(
            "default",
            self.source,
            Scope(),
            utc_now=self.source.utc_now,
            monotonic=self.source.monotonic,
            feeds=feeds,
        )
        self.pipeline = Pipeline(
            watcher=watcher,
            round_writer=RoundWriter(
                store, "default", monotonic=self.source.monotonic, waiting_rounds=100
            ),
            exposition=self.exposition,
            latest=self.latest,
            monotonic=self.source.monotonic,
            risk=risk,
            endpoints=endpoints,
        )

    def rounds(self, count: int | None = None) -> list[RoundResult]:
        wanted = len(self.source.observations) if count is None else count
        made: list[RoundResult] = []
        for _ in range(wanted):
            self.source.pass_interval()
            made.append(self.pipeline.make_round())
        return made

    @property
    def state(self) -> ServiceState:
        return self.latest.state

    def page(self) -> str:
        return self.exposition.body(None, gzip=False)[0].decode()


def observed_states(page: str) -> list[str]:
    """Return the lines that tell how the cluster is; counters tell what happened so far."""
    counted = tuple(name for metric in ENDED_METRICS for name in metric.series)
    lines = (line for line in page.splitlines() if line.startswith("tidemark_kafka_"))
    return [line for line in lines if not line.startswith(counted)]


def started(
    store: MemoryStore, *observations: dict[str, Any] | None, after_rounds: int = 0
) -> Service:
    made = Service(store, *observations, after_rounds=after_rounds)
    made.pipeline.load(is_start=True)
    return made


def steps(made: RoundResult) -> list[Step]:
    return [change.step for change in made.changes]
