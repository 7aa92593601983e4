"""What was sent again is not lost, what is lost can be produced again, and copies that prove nothing are named."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from rules.facts.identity import TopicPartition
from rules.log_files.histories import DiffReason
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.faults import prepare_loss
from service.sandbox.faults.replicas import revive
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import LEADER_ALONE, append, append_plain, new_producer
from service.sandbox.workloads.record_batch import Batch
from service.terminal.exit_codes import ExitCode
from tests.integration.former_leaders import former_leaders, log_diff
from tests.integration.loss_truths import KEPT, SOON
from tests.kafka_release import ELIGIBLE_REPLICAS

pytestmark = pytest.mark.integration

PAGE: Final = Path(__file__).parents[2] / "docs" / "log-files.md"
SENT_AGAIN: Final = [b"an order", b"\xff\xfe no text"]
WRITTEN_ANEW: Final = [b"a payment"]
# Key, value, headers, timestamp: written by a client, compressed, and lost with the leader.
LOST: Final[list[tuple[Any, ...]]] = [
    (b"k", "an invoice \N{MONEY BAG}".encode(), [("trace", b"\x00\xff"), ("none", None)], 1_700_000_000_123),
    (b"\xff\x00", None, None, 1_700_000_000_456),
    (None, b"", [("empty", b"")], 1_700_000_000_789),
]  # fmt: skip
FATES: Final = {"beyond_high_watermark": 3 + len(LOST), "again": 2, "possibly_again": 1}


@ELIGIBLE_REPLICAS
def test_only_what_nobody_sent_again_is_produced_again(
    faults: Sandbox, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    """Of what the leader alone had, one batch is sent again by its producer, another one under another id."""
    with (
        former_leaders(faults, tmp_path) as copies,
        RawCluster(faults) as cluster,
        prepare_loss("unreplicated-loss", faults, records=3) as prepared,
    ):
        where = TopicPartition(prepared.topic, 0)
        sent = in_sequence(new_producer(cluster, new_name("first")).producer_id)
        for batch in sent:
            append(cluster, where, batch, acks=LEADER_ALONE)
        write_lost(faults, where)
        truth = prepared.inject()
        [partition] = truth.partitions
        leader, former = partition.after.leader, partition.before.leader
        old = copies.of(former, where.topic)

        append_plain(cluster, where, 2, first=1000, acks=LEADER_ALONE)
        again = append(cluster, where, sent[0], acks=LEADER_ALONE)
        anew = Batch(values=WRITTEN_ANEW, is_transactional=False)
        end = append(cluster, where, anew, acks=LEADER_ALONE) + 1
        revive(prepared.run, former)  # so that the high watermark goes on
        lines = tmp_path / "lost.jsonl"
        wanted = ("--include", "beyond_high_watermark", "--records", str(lines))
        compared = log_diff(faults, old, *wanted, code=ExitCode.LOST)
        assert (again, compared["divergence_offset"]) == (KEPT + 2, KEPT)
        assert compared["new"]["read_to"] == end
        assert fates(compared) == FATES
        assert_other_copies_are_named(faults, old, leader, former)

        run_program_of_the_page(faults, lines, tmp_path)
        assert records_from(faults, where, end)[3:] == LOST
        twice = log_diff(
            faults, old, "--records", str(tmp_path / "twice.jsonl"), code=ExitCode.LOST
        )
        assert fates(twice) == {"again": 2, "possibly_again": 1 + 3 + len(LOST)}
        assert twice["written_records"] == 0, "nobody produces them a third time"


def in_sequence(producer_id: int) -> list[Batch]:
    """Return two batches of one producer, one behind the other."""
    return [
        Batch(
            values=values,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=False,
        )
        for values, sequence in ((SENT_AGAIN, 0), (WRITTEN_ANEW, len(SENT_AGAIN)))
    ]


def write_lost(cluster: Sandbox, where: TopicPartition) -> None:
    """Write to the leader alone, as a client that does not wait for followers."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "acks": 1,
        "compression.type": "zstd",
    }
    producer = Producer(settings)
    for key, value, headers, timestamp in LOST:
        producer.produce(
            where.topic, partition=where.partition, key=key, value=value,
            headers=headers or [], timestamp=timestamp,
        )  # fmt: skip
    assert producer.flush(SOON) == 0


def fates(document: dict[str, Any]) -> dict[str, int]:
    return {fate: count for fate, count in document["records"].items() if count}


def run_program_of_the_page(cluster: Sandbox, lines: Path, folder: Path) -> None:
    """Run what docs/log-files.md has for producing records again."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = folder / "again.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, str(path), str(lines), cluster.bootstrap_servers]
    subprocess.run(command, check=True, timeout=SOON)


def records_from(cluster: Sandbox, where: TopicPartition, offset: int) -> list[tuple[Any, ...]]:
    """Return what a read_committed consumer gets from an offset on."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"outside-{where.topic}",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    records = []
    try:
        reader.assign([Place(where.topic, where.partition, offset)])
        while (message := reader.poll(SOON)) is not None and message.error() is None:
            timestamp = message.timestamp()[1]
            records.append((message.key(), message.value(), message.headers(), timestamp))
    finally:
        reader.close()
    return records


def assert_other_copies_are_named(
    faults: Sandbox, old: Path, new_leader: int, former_leader: int
) -> None:
    """The new leader's folder says the same as the leader; other folders prove nothing, and say so."""
    folders = {
        broker: node_layout(faults.directory, broker).data / old.name
        for broker in (new_leader, former_leader)
    }
    by_folder = log_diff(faults, old, str(folders[new_leader]), code=ExitCode.LOST)
    by_header = {"beyond_high_watermark": FATES["beyond_high_watermark"] + 1, "again": 2}
    assert fates(by_folder) == by_header, "a new id is recognized by content alone"
    swapped = log_diff(faults, folders[new_leader], str(old), code=ExitCode.INCOMPLETE)
    assert swapped["reason"] == DiffReason.NEW_IS_NOT_LATER
    truncated = log_diff(faults, folders[former_leader], code=ExitCode.INCOMPLETE)
    assert truncated["reason"] == DiffReason.FOLLOWED_NEW_LEADER
