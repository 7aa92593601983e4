"""Where partitions are, by the brokers' own metadata, second by second."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

from rules.errors import SandboxError
from rules.facts.identity import BrokerId
from service.runtime.clock import utc_now
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.raw_cluster import Placed, RawCluster
from tests.integration.ordinary.audited import Place

POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementProblem:
    """A broker's metadata shows no leader of a partition, or too few replicas in sync."""

    at: datetime
    place: Place
    in_sync: int
    has_leader: bool


@dataclass
class PlacementMonitor:
    """Queries each broker every second, and remembers ISRs below `least` and missing leaders."""

    cluster: Sandbox
    least: Mapping[str, int]  # min.insync.replicas by topic
    problems: list[PlacementProblem] = field(default_factory=list)
    epochs: dict[Place, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(node.id,), name=f"placement-{node.id}")
            for node in self.cluster.state.brokers
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @property
    def leader_changes(self) -> int:
        """How often leaders changed: each change has an epoch of its own."""
        return sum(len(epochs) - 1 for epochs in self.epochs.values())

    def _run(self, broker: int) -> None:
        with RawCluster(self.cluster) as raw:
            while not self._stopping.wait(POLL_SECONDS):
                try:
                    self._note(raw.topics(broker=BrokerId(broker)))
                except SandboxError:  # it is frozen or dead: the others answer
                    continue

    def _note(self, topics: Mapping[str, list[Placed]]) -> None:
        now = utc_now()
        for topic, partitions in topics.items():
            for number, placed in enumerate(partitions):
                place, in_sync, has_leader = (topic, number), len(placed.isr), placed.leader >= 0
                self.epochs.setdefault(place, set()).add(placed.leader_epoch)
                if not has_leader or in_sync < self.least.get(topic, 0):
                    self.problems.append(
                        PlacementProblem(
                            at=now, place=place, in_sync=in_sync, has_leader=has_leader
                        )
                    )
