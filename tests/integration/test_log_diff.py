"""What was sent again is not lost, and copies that prove nothing are named: on a real failover."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rules.facts.identity import TopicPartition
from rules.log_files.histories import DiffReason
from service.cli.terminal.exit_codes import ExitCode
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.faults import prepare_loss
from service.sandbox.faults.replicas import revive
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import LEADER_ALONE, append, append_plain, new_producer
from service.sandbox.workloads.record_batch import Batch
from tests.integration.former_leaders import content, former_leaders, log_diff
from tests.integration.loss_truths import KEPT
from tests.kafka_release import ELIGIBLE_REPLICAS

pytestmark = pytest.mark.integration

SENT_AGAIN = [b"an order", b"\xff\xfe no text"]
WRITTEN_ANEW = [b"a payment"]
NOBODY_HAS = [b"an invoice \xf0\x9f\x92\xb6", b""]


@ELIGIBLE_REPLICAS
def test_what_its_producer_sent_again_is_not_lost(
    faults: Sandbox, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    """The leader alone had five batches; of one the producer got no answer, another one was sent under a new id."""
    with (
        former_leaders(faults, tmp_path) as copies,
        RawCluster(faults) as cluster,
        prepare_loss("unreplicated-loss", faults, records=3) as prepared,
    ):
        where, producer = (
            TopicPartition(prepared.topic, 0),
            new_producer(cluster, new_name("first")),
        )
        batches = [
            Batch(
                values=values,
                producer_id=producer.producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=False,
            )
            for values, sequence in ((SENT_AGAIN, 0), (WRITTEN_ANEW, 2), (NOBODY_HAS, 3))
        ]
        for batch in batches:
            append(cluster, where, batch, acks=LEADER_ALONE)
        truth = prepared.inject()
        [partition] = truth.partitions
        old = copies.of(partition.before.leader, where.topic)

        append_plain(cluster, where, 2, first=1000, acks=LEADER_ALONE)
        again = append(cluster, where, batches[0], acks=LEADER_ALONE)
        anew = Batch(values=WRITTEN_ANEW, is_transactional=False)
        written = append(cluster, where, anew, acks=LEADER_ALONE)
        revive(prepared.run, partition.before.leader)  # so that the high watermark goes on
        lines = tmp_path / "lost.jsonl"
        seen = ("--include", "beyond_high_watermark", "--records", str(lines))
        found = log_diff(faults, old, *seen, code=ExitCode.LOST)
        assert (again, found["divergence_offset"], found["new"]["read_to"]) == (
            KEPT + 2,
            KEPT,
            written + 1,
        )
        counts = {fate: count for fate, count in found["records"].items() if count}
        assert counts == {"beyond_high_watermark": 3 + 2, "again": 2, "possibly_again": 1}
        records = [json.loads(line) for line in lines.read_text().splitlines()]
        assert [content(record, "value") for record in records][3:] == NOBODY_HAS
        assert_other_copies_are_named(faults, old, partition.after.leader, partition.before.leader)


def assert_other_copies_are_named(
    faults: Sandbox, old: Path, new_leader: int, former_leader: int
) -> None:
    """The new leader's folder says the same as the leader; other folders prove nothing, and say so."""
    folders = {
        broker: node_layout(faults.directory, broker).data / old.name
        for broker in (new_leader, former_leader)
    }
    by_folder = log_diff(faults, old, str(folders[new_leader]), code=ExitCode.LOST)
    counts = {fate: count for fate, count in by_folder["records"].items() if count}
    assert counts == {"beyond_high_watermark": 3 + 1 + 2, "again": 2}, "headers alone"
    swapped = log_diff(faults, folders[new_leader], str(old), code=ExitCode.INCOMPLETE)
    assert swapped["reason"] == DiffReason.NEW_IS_NOT_LATER
    truncated = log_diff(faults, folders[former_leader], code=ExitCode.INCOMPLETE)
    assert truncated["reason"] == DiffReason.FOLLOWED_NEW_LEADER
