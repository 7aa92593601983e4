"""One round over 1,000 partitions x 100 groups, then over 10,000 x 1,001; stats are printed.

Groups have no members; one of them has committed every partition, the others 20 each. Brokers,
reader and this script share the machine, so that the stats are an upper bound for the reader and
say nothing about a real network.
"""

from __future__ import annotations

import resource
import statistics
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from rules.facts.snapshot import Snapshot
from service.app import cluster_reader
from service.observe.cluster_reader import Scope
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.settings import KafkaSettings
from tests.bench.memory import weighed
from tests.integration.serve.served import Served, Start

ROUNDS = 15
SERVED_ROUNDS = 40
PARTITIONS_PER_TOPIC = 50
TOPICS_PER_GROUP = 2
PARTITIONS_PER_GROUP_AND_TOPIC = 10
WIDE_COMMIT_CHUNK = 2000  # one request below a record batch: a broker answers larger ones twice


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("round") / "kafka", options=SandboxOptions(heap="1g"))
    made.up()
    try:
        yield made
    finally:
        made.down()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("topics", "groups", "bar_seconds"), [(20, 100, 0.1), (200, 1001, 0.5)], ids=["1k", "10k"]
)
def test_round(sandbox: Sandbox, topics: int, groups: int, bar_seconds: float) -> None:
    _grow(sandbox, topics=topics, groups=groups)
    settings = KafkaSettings(name="bench", bootstrap_servers=sandbox.bootstrap_servers)
    reader = cluster_reader(settings)
    begin = monotonic()
    first = reader.read(Scope())
    cold = monotonic() - begin
    snapshots = [reader.read(Scope()) for _ in range(ROUNDS + 2)][2:]
    reader.close()
    _print(first, snapshots, cold, bar_seconds)
    last = snapshots[-1]
    assert len([t for t in last.partitions.index.topics if t.startswith("load-")]) == topics
    assert len(last.groups) == groups
    assert last.gaps == ()
    assert last.report.requests["ListOffsets"] <= 4 * len(last.brokers)


@pytest.mark.timeout(900)
def test_rounds_of_the_service_process(sandbox: Sandbox, folder: Path) -> None:
    """40 rounds of `tidemark serve` over the larger of the two, scraped every second."""
    _grow(sandbox, topics=200, groups=1001)
    start = Start(bootstrap=sandbox.bootstrap_servers, directory=folder / "data", interval=0.5)
    with ExitStack() as undo:
        served = Served(start, folder / "serve.log")
        undo.callback(served.stop)
        served.wait_ready()

        def is_over() -> bool:
            served.get("/metrics", **{"accept-encoding": "gzip"})
            return len(served.rounds()) >= SERVED_ROUNDS

        assert wait_until(is_over, timeout_seconds=120, poll_seconds=1), served.reported()
        took = [seen["took_seconds"] for seen in served.rounds()]
        status = served.status()
        print(
            f"\ntidemark serve, {len(took)} rounds at an interval of {start.interval} s, "
            f"{len(served.get('/metrics').content) / 1e6:.1f} MB of metrics"
            f"\n  whole round  median {statistics.median(took):.3f} s, max {max(took):.3f} s, "
            f"first {took[0]:.3f} s; status says {status['round']['took_seconds']:.3f} s"
            f"\n  memory       {weighed(served.process.pid)} (bar: 250 MiB)"
        )
        assert {seen["outcome"] for seen in served.rounds()} == {"complete"}


def _print(first: Snapshot, snapshots: list[Snapshot], cold: float, bar: float) -> None:
    took = [snapshot.report.took_seconds for snapshot in snapshots]
    last = snapshots[-1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n{len(last.partitions):,} partitions x {len(last.groups):,} groups, "
        f"{len(last.commits):,} commits, {ROUNDS} rounds"
        f"\n  round   min {min(took):.3f} s, median {statistics.median(took):.3f} s, "
        f"max {max(took):.3f} s (bar: median under {bar} s); first round {cold:.3f} s"
        f"\n  memory  {peak:.0f} MiB at its highest, this whole process"
        f"\n  requests  {dict(last.report.requests)}"
    )
    for phase in last.report.phase_seconds:
        spent = [snapshot.report.phase_seconds[phase] for snapshot in snapshots]
        print(f"  {phase:<10} median {statistics.median(spent) * 1000:6.1f} ms")
    assert first.cluster_id == last.cluster_id


def _grow(sandbox: Sandbox, *, topics: int, groups: int) -> None:
    admin = SandboxAdmin(sandbox.bootstrap_servers)
    names = [f"load-{number:03}" for number in range(topics)]
    existing = AdminClient({"bootstrap.servers": sandbox.bootstrap_servers}).list_topics().topics
    for name in names:
        if name not in existing:
            admin.create_topic(name, partitions=PARTITIONS_PER_TOPIC, replication=1)
    client = AdminClient({"bootstrap.servers": sandbox.bootstrap_servers})
    _commit(client, "wide", [TopicPartition(n, p, 0) for n in names for p in range(50)])
    for number in range(groups - 1):
        chosen = [names[(number + step) % topics] for step in range(TOPICS_PER_GROUP)]
        offsets = [
            TopicPartition(name, partition, 0)
            for name in chosen
            for partition in range(PARTITIONS_PER_GROUP_AND_TOPIC)
        ]
        _commit(client, f"group-{number:04}", offsets)


def _commit(client: AdminClient, group: str, offsets: list[TopicPartition]) -> None:
    for start in range(0, len(offsets), WIDE_COMMIT_CHUNK):
        chunk = offsets[start : start + WIDE_COMMIT_CHUNK]

        def committed(chunk: list[TopicPartition] = chunk) -> bool:
            request = ConsumerGroupTopicPartitions(group, chunk)
            futures = client.alter_consumer_group_offsets([request])
            wait(futures.values())
            answer = next(iter(futures.values())).result()
            return all(entry.error is None for entry in answer.topic_partitions)

        assert wait_until(committed, timeout_seconds=30), f"commits of {group} were rejected"
