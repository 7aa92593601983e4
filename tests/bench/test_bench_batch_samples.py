"""What sampling batches costs a round over 300 busy partitions, and its memory a checkpoint; stats are printed.

Two producers write to all partitions at once, one of large batches. Brokers, producers, reader and this script
share the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from rules.facts.client_memory import ClientMemory
from rules.facts.identity import TopicPartition
from rules.facts.snapshot import Snapshot
from rules.facts.writer_memory import (
    MOST_PARTITIONS,
    Writer,
    WriterMemory,
    WrittenPartition,
    advance_writers,
)
from rules.posture.replaced_producers import find_replacements
from service.app import cluster_reader
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import monotonic, pause
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.producer import IdempotentProducer
from service.settings import KafkaSettings
from service.storage.formats.arrays import Arrays
from service.storage.formats.clients import put_clients
from tests.factories import snapshot
from tests.unit.rules.posture.client_rounds import sample, sampled, writer

ROUNDS = 20
ROUND_SECONDS = 1.0
PARTITIONS = 150
MIB = 1024 * 1024
SECOND_US = 1_000_000


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("samples") / "kafka")
    made.up()
    try:
        yield made
    finally:
        made.down()


@pytest.mark.timeout(900)
def test_a_round_that_samples(sandbox: Sandbox) -> None:
    admin = SandboxAdmin(sandbox.bootstrap_servers)
    reader = cluster_reader(KafkaSettings(bootstrap_servers=sandbox.bootstrap_servers))
    with ExitStack() as undo:
        undo.callback(reader.close)
        for topic, size, linger in (("small", 100, "5"), ("large", 20_000, "500")):
            admin.create_topic(topic, partitions=PARTITIONS)
            load = IdempotentProducer(
                sandbox.bootstrap_servers,
                topic=topic,
                rate=1000.0,
                size=size,
                settings={"linger.ms": linger},
            )
            undo.enter_context(load)
        before = read(reader, Scope())
        after = read(reader, Scope(batch_samples=True))
    samples = [each.batch_samples for each in after]
    spent = [each.report.phase_seconds["batch_samples"] * 1000 for each in after]
    print(
        f"\n{2 * PARTITIONS} busy partitions, {len(after[-1].brokers)} brokers, {ROUNDS} rounds"
        f"\n  round without  median {took(before):.1f} ms, requests {fetches(before)} Fetch"
        f"\n  round with     median {took(after):.1f} ms, requests {fetches(after)} Fetch"
        f"\n  sampling       median {statistics.median(spent):.1f} ms, max {max(spent):.1f} ms"
        f"\n  bytes          median {statistics.median(each.sampled_bytes for each in samples) / 1024:.0f} KiB, "
        f"max {max(each.sampled_bytes for each in samples) / 1024:.0f} KiB (bar: 1024)"
        f"\n  requests       max {max(each.requests for each in samples)} in a round"
        f"\n  partitions     median {statistics.median(len(each.partitions) for each in samples):.0f} in a round, "
        f"{len({s.row for each in samples for s in each.partitions})} in all"
    )
    assert all(each.sampled_bytes < MIB for each in samples)
    assert all(each.requests <= len(after[-1].brokers) for each in samples)


def read(reader: ClusterReader, scope: Scope) -> list[Snapshot]:
    snapshots = []
    for _ in range(ROUNDS):
        snapshots.append(reader.read(scope))
        pause(ROUND_SECONDS)
    return snapshots


def took(snapshots: list[Snapshot]) -> float:
    return statistics.median(each.report.took_seconds for each in snapshots) * 1000


def fetches(snapshots: list[Snapshot]) -> str:
    counts = [each.report.requests.get("Fetch", 0) for each in snapshots]
    return f"{min(counts)} to {max(counts)}"


def test_a_full_memory() -> None:
    """Advance, judge and store as much as is ever remembered, of which a round samples 120 partitions."""
    base = Writer(
        producer_id=0,
        producer_epoch=0,
        begins=False,
        first_offset=2**40,
        last_offset=2**40 + 12345,
        first_record_us=1_800_000_000_000_000,
        last_record_us=1_800_000_000_000_000,
        first_seen_us=SECOND_US,
        last_seen_us=2 * SECOND_US,
        samples=20,
        first_sample=1,
        last_sample=30,
    )
    names = [TopicPartition(f"topic-{n // 50:04}", n % 50) for n in range(MOST_PARTITIONS)]
    partitions = {
        name: WrittenPartition(
            name=name,
            topic_id=None,
            samples=30,
            writers=tuple(replace(base, producer_id=3 * number + each) for each in range(3)),
        )
        for number, name in enumerate(names)
    }
    memory = WriterMemory(partitions=partitions)
    put_clients({}, ClientMemory(writers=memory))
    seen = snapshot(batch_samples=sampled(*(sample(writer(7, 5), row=0) for _ in range(120))))
    begin = monotonic()
    memory = advance_writers(seen, 3 * SECOND_US, memory)
    advanced = monotonic()
    find_replacements(memory, 100 * SECOND_US)
    judged = monotonic()
    arrays: Arrays = {}
    put_clients(arrays, ClientMemory(writers=memory))
    stored = monotonic()
    print(
        f"\n{MOST_PARTITIONS:,} partitions with 3 producers each: advance {(advanced - begin) * 1000:.1f} ms, "
        f"judge {(judged - advanced) * 1000:.1f} ms, store {(stored - judged) * 1000:.1f} ms, "
        f"{sum(array.nbytes for array in arrays.values()) / 1e6:.1f} MB before compression"
    )
