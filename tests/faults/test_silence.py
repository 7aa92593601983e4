"""A leader that nobody hears for a while, and what had been found out before: silence says nothing."""

from __future__ import annotations

import random
import uuid

import pytest

from rules.facts.identity import BrokerId, TopicPartition
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import SequencedProducer, new_producer
from tests.faults.matrix import SEEN_SECONDS, Matrix

EVERY_SEQUENCE_RULE = (
    "sequence_gap_loss",
    "sequence_gap_reordering",
    "sequence_gap_undetermined",
    "duplicates_possible",
    "producer_sequence_bug",
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    "gap", [pytest.param(24, marks=pytest.mark.variation), random.randint(40, 5000)]
)
def test_a_partition_without_a_leader_for_a_while_turns_a_clean_change_into_no_loss(
    faults: Sandbox, matrix: Matrix, gap: int
) -> None:
    topic = f"sequence-silence-{uuid.uuid4().hex[:8]}"
    where, admin = TopicPartition(topic, 0), SandboxAdmin(faults.bootstrap_servers)
    admin.create_topic(topic, configs={"unclean.leader.election.enable": "false"})
    with RawCluster(faults) as brokers:
        producer = new_producer(brokers, topic)
        producer.send(where, 0, 3)
        matrix.await_watched(topic)
        faults.kill(lead_by(brokers, where))
        send_behind(brokers, producer, where, gap)
        await_reason(matrix, topic, "clean_changes")
        faults.kill(lead_by(brokers, where))
        await_silent(matrix, topic)
        assert_nobody_warned(matrix, topic, gap)
        await_watched_again(matrix, topic)
        matrix.served.wait_rounds(3)
        assert_nobody_warned(matrix, topic, gap)
        [event] = matrix.episodes(topic)
        assert (event["class"], event["reason"]) == ("client_failure", "clean_changes")


def lead_by(brokers: RawCluster, where: TopicPartition) -> BrokerId:
    """Return the leader that there is now."""
    return brokers.placed(where).leader


def send_behind(
    brokers: RawCluster, producer: SequencedProducer, where: TopicPartition, gap: int
) -> None:
    """Skip records, as a client does that gave them up, once there is another leader."""
    old = {lead_by(brokers, where)} - set(brokers.running())
    assert wait_until(lambda: lead_by(brokers, where) not in old, timeout_seconds=SEEN_SECONDS), (
        "no other leader"
    )
    producer.expect_rejection(where, 3 + gap, 2)


def await_reason(matrix: Matrix, topic: str, reason: str) -> None:
    is_said = wait_until(
        lambda: [event["reason"] for event in matrix.episodes(topic)] == [reason],
        timeout_seconds=SEEN_SECONDS,
        poll_seconds=0.3,
    )
    assert is_said, matrix.episodes(topic)


def epoch_seen(matrix: Matrix, topic: str) -> int | None:
    [row] = matrix.served.document(f"/api/v1/partitions?topic={topic}")["items"]
    epoch: int | None = row["leader_epoch"]
    return epoch


def await_silent(matrix: Matrix, topic: str) -> None:
    """Wait until a round has nobody who tells of the partition."""
    assert wait_until(
        lambda: epoch_seen(matrix, topic) is None, timeout_seconds=SEEN_SECONDS, poll_seconds=0.1
    ), matrix.served.reported()


def await_watched_again(matrix: Matrix, topic: str) -> None:
    assert wait_until(
        lambda: epoch_seen(matrix, topic) is not None, timeout_seconds=SEEN_SECONDS
    ), matrix.served.reported()


def assert_nobody_warned(matrix: Matrix, topic: str, gap: int) -> None:
    for rule, rows in matrix.breaches(topic).items():
        if rule in EVERY_SEQUENCE_RULE:
            assert {row["severity"] for row in rows} == {"info"}, (gap, rows)
