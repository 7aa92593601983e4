"""Looking at 500, then at 2,000 of 10,000 partitions every second; stats are printed.

The bar is one exchange per leader and second, and 5 % of one core at 500. The partitions have one
replica each, and what is at risk is only said of them: an answer of a leader is the same for all.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from collectors.at_risk_observations import AtRiskObservation, RiskReader, RiskTargets
from collectors.security import Security
from collectors.wire.pool import Pool
from rules.facts.column import Ragged
from rules.facts.snapshot import Snapshot
from service.app import cluster_reader
from service.observe.cluster_reader import Scope
from service.observe.risk_watch import RiskPace, RiskWatch
from service.runtime.clock import monotonic, pause, utc_now
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.settings import KafkaSettings

TOPICS = 200
PARTITIONS_PER_TOPIC = 50
OBSERVATIONS = 30
BAR_PERCENT = 5
PACE = RiskPace(interval_seconds=1.0, request_seconds=5.0, max_partitions=2000)


class Measured:
    """A reader that remembers what it was answered."""

    def __init__(self) -> None:
        self._reader = RiskReader(Pool(Security()))
        self.observations: list[AtRiskObservation] = []

    def observe(self, targets: RiskTargets, *, seconds: float, now_us: int) -> AtRiskObservation:
        """Observation once."""
        self.observations.append(self._reader.observe(targets, seconds=seconds, now_us=now_us))
        return self.observations[-1]

    def close(self) -> None:
        """Close all connections."""
        self._reader.close()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """Give a round of a cluster with 10,000 partitions, which runs until the module ends."""
    made = Sandbox(tmp_path_factory.mktemp("risk") / "kafka", options=SandboxOptions(heap="1g"))
    made.up()
    try:
        admin = SandboxAdmin(made.bootstrap_servers)
        for number in range(TOPICS):
            name = f"load-{number:03}"
            admin.create_topic(name, partitions=PARTITIONS_PER_TOPIC, replication=1)
        settings = KafkaSettings(name="bench", bootstrap_servers=made.bootstrap_servers)
        with closing(cluster_reader(settings)) as reader:
            yield reader.read(Scope())
    finally:
        made.down()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("at_risk", [500, 2000])
def test_observations(seen: Snapshot, at_risk: int) -> None:
    reader = Measured()
    watch = RiskWatch(reader, PACE, utc_now=utc_now, monotonic=monotonic, stop=asyncio.Event())
    with closing(watch):
        watch.note(_at_risk(seen, at_risk))
        watch.observe_once()  # connects
        used, began, took = _cpu_seconds(), monotonic(), list[float]()
        for number in range(1, OBSERVATIONS + 1):
            watch.observe_once()
            took.append(watch.stats().took_seconds or 0.0)
            pause(max(0.0, began + number * PACE.interval_seconds - monotonic()))
        percent = 100 * (_cpu_seconds() - used) / (monotonic() - began)
    _print(at_risk, seen, reader, took, percent)
    leaders = len(seen.brokers)
    for found in reader.observations[1:]:
        assert found.unseen == 0
        assert found.requests == {"ListOffsets": 3 * leaders}


def _at_risk(seen: Snapshot, count: int) -> Snapshot:
    """Say that so many partitions, spread over all topics, had a second replica that fell behind."""
    rows = len(seen.partitions)
    chosen = set(np.linspace(0, rows - 1, count).astype(int).tolist())
    replicas = [(1, 2) if row in chosen else (1,) for row in range(rows)]
    placed = replace(seen.partitions, replicas=Ragged.of(replicas), isr=Ragged.of([(1,)] * rows))
    return replace(seen, partitions=placed)


def _print(
    at_risk: int, seen: Snapshot, reader: Measured, took: list[float], percent: float
) -> None:
    bar = f" (bar: {BAR_PERCENT} %)" if at_risk == 500 else ""
    last = reader.observations[-1]
    print(
        f"\n{at_risk:,} of {len(seen.partitions):,} partitions at risk, {OBSERVATIONS} observations"
        f"\n  observation      median {statistics.median(took) * 1000:.1f} ms, max {max(took) * 1000:.1f} ms"
        f"\n  processor {percent:.2f} % of one core, this whole process{bar}"
        f"\n  requests  {dict(last.requests)} an observation, {len(seen.brokers)} leaders, "
        f"{last.unseen} partitions not seen"
    )


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
