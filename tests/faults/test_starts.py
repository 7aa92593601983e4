"""What healthy applications make brokers write: batches that overtake the first one of a transaction.

Kafka Streams does so all the time, with transactions v2. One service sees everything, one no
partition: neither may take it for a loss, at any time.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rules.facts.identity import TopicPartition
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import Protocol, RawProducer, after
from tests.faults.matrix import Matrix
from tests.integration.serve.served import end_processes
from tests.kafka_release import TRANSACTIONS_V2

LONGER_THAN_ASKED = 45  # transactions: one episode is inspected in 40 rounds at most

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1200),
    TRANSACTIONS_V2,
]


def overtake_start(
    owner: RawProducer, where: TopicPartition, sizes: Sequence[int], *, commit: bool = True
) -> int:
    """Write a transaction whose later batches all come before its first one, as in Kafka Streams.

    Each of them is rejected once and sent again behind the first; with fewer than two nothing is
    overtaken. Returns how many were rejected.
    """
    producer, starts, next_sequence = owner.sequenced(), list[int](), 0
    for size in sizes:
        starts.append(next_sequence)
        next_sequence = after(next_sequence, size)
    for start, size in zip(starts[1:], sizes[1:], strict=True):
        producer.expect_rejection(where, start, size)
    for start, size in zip(starts, sizes, strict=True):
        producer.send(where, start, size)
    owner.end(commit=commit)
    return len(starts) - 1


@pytest.fixture(scope="module")
def blind(cluster: Sandbox, short_folder: Path) -> Iterator[Matrix]:
    """Start a service that reads the logs and sees no partition."""
    folder = short_folder / "starts"
    folder.mkdir()
    matrix = Matrix(cluster, folder, topics="nothing")
    try:
        yield matrix
    finally:
        matrix.served.kill()
        end_processes(folder / "data")


@contextlib.contextmanager
def producer_on(cluster: Sandbox, topic: str) -> Iterator[RawProducer]:
    ensure_topics(cluster.bootstrap_servers, topic, partitions=1)
    with RawCluster(cluster) as brokers:
        producer = RawProducer(cluster=brokers, transactional_id=topic, protocol=Protocol.V2)
        producer.begin()
        yield producer


def assert_harmless(matrix: Matrix, topic: str, severity: str = "info") -> None:
    """Assert that nothing is called a loss, and nothing above a severity is reported."""
    for event in matrix.episodes(topic):
        assert event["class"] not in ("loss", "producer_state_lost", "client_failure"), event
    for rows in matrix.breaches(topic).values():
        assert {row["severity"] for row in rows} == {severity}, rows


def sizes_of(numbers: random.Random) -> list[int]:
    """Return how many records the batches of one transaction have; often they are the same."""
    if numbers.random() < 0.6:
        return [20, 7]
    return [numbers.randint(1, 200) for _ in range(numbers.randint(2, 5))]


@pytest.mark.parametrize("seed", [random.randint(3, 10_000)])
def test_starts_of_transactions_that_are_overtaken_are_harmless_however_many(
    cluster: Sandbox, matrix: Matrix, blind: Matrix, seed: int
) -> None:
    numbers, topic = random.Random(seed), f"sequence-starts-{uuid.uuid4().hex[:8]}"
    where = TopicPartition(topic, 0)
    with producer_on(cluster, topic) as owner:
        matrix.await_watched(topic)
        rejected = 0
        for number in range(LONGER_THAN_ASKED + numbers.randint(0, 10)):
            rejected += overtake_start(
                owner, where, sizes_of(numbers), commit=numbers.random() < 0.9
            )
            if number > 2:  # before, so that one round reads several
                matrix.served.wait_rounds(1)
            assert_harmless(matrix, topic)
            assert_harmless(blind, topic)
    matrix.await_breach(topic, "sequence_gap_reordering")
    matrix.served.wait_rounds(3)
    [event] = matrix.episodes(topic)
    assert (event["class"], event["phase"]) == ("reordering", "confirmed"), (seed, event)
    assert event["rejections"] == rejected
    assert set(matrix.breaches(topic)) == {"sequence_gap_reordering"}
    assert_harmless(matrix, topic)
    assert_harmless(blind, topic)


@pytest.mark.parametrize("others", [random.randint(1, 5)])
def test_a_start_that_is_aborted_before_anything_came_loses_no_state(
    cluster: Sandbox, matrix: Matrix, others: int
) -> None:
    """The producer never wrote there: a leader without its state has lost nothing."""
    topic = f"sequence-starts-{uuid.uuid4().hex[:8]}"
    where = TopicPartition(topic, 0)
    with producer_on(cluster, topic) as owner:
        matrix.await_watched(topic)
        for _ in range(others):
            owner.sequenced().expect_rejection(where, 30, 5)
            owner.end(commit=False)
        overtake_start(owner, where, [4, 6])
        matrix.served.wait_rounds(4)
        # Each of them was aborted without the batch that was rejected in it.
        assert_harmless(matrix, topic, "warning")
