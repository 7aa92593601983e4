"""Snapshots, checkpoints, transaction indexes and topic ids: whole, cut short, damaged and of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collectors.log_files.checkpoints import read_epochs, read_offsets
from collectors.log_files.indexes import read_transaction_index
from collectors.log_files.partition_metadata import read_partition_metadata
from collectors.log_files.snapshots import read_snapshot
from rules.facts.identity import TopicPartition
from rules.facts.log_files import ProblemKind
from rules.facts.log_states import AbortedEntry, EpochStart, ProducerEntry
from tests.unit.collectors.log_files.files import (
    BASE,
    TOPIC_ID,
    checkpoint_text,
    index_bytes,
    snapshot_bytes,
)

PRODUCER = ProducerEntry(
    producer_id=7, producer_epoch=2, last_sequence=1, last_offset=40, offset_delta=3, timestamp_ms=1_700_000_000_000,
    coordinator_epoch=5, current_transaction_start_offset=37,
)  # fmt: skip
IDLE = ProducerEntry(producer_id=8, producer_epoch=0)
ABORTED = (AbortedEntry(7, 3, 5, 6), AbortedEntry(8, 9, 12, 9))
# Of a broker of release 4.1.1, after a clean stop.
OF_KAFKA = bytes.fromhex(
    "0001 91116437 00000001 0000000000000001 0000 00000003 0000000000000004 00000001 000001a1fe0ec361 00000000 ffffffffffffffff"
)


@dataclass(frozen=True)
class Case:
    id: str
    read: Callable[[Path], Any]
    name: str
    content: bytes | str
    of: str  # the attribute that holds what was read
    expected: object
    problems: tuple[tuple[ProblemKind, int | None], ...] = ()


SNAPSHOT, INDEX = f"{BASE}.snapshot", f"{BASE}.txnindex"
HIGH_WATERMARKS, EPOCHS = "replication-offset-checkpoint", "leader-epoch-checkpoint"
CASES = (
    Case("snapshot", read_snapshot, SNAPSHOT, snapshot_bytes(PRODUCER, IDLE), "producers", (PRODUCER, IDLE)),
    Case("snapshot without producers", read_snapshot, SNAPSHOT, snapshot_bytes(), "producers", ()),
    Case(
        "snapshot cut within an entry", read_snapshot, SNAPSHOT, snapshot_bytes(PRODUCER, IDLE)[:-1],
        "producers", (PRODUCER,), ((ProblemKind.TRUNCATED, 56),),
    ),
    Case("empty snapshot", read_snapshot, SNAPSHOT, b"", "producers", (), ((ProblemKind.TRUNCATED, 0),)),
    Case(
        "snapshot with another byte", read_snapshot, SNAPSHOT, snapshot_bytes(IDLE)[:-1] + b"\0",
        "producers", (ProducerEntry(producer_id=8, producer_epoch=0),), ((ProblemKind.BAD_CHECKSUM, 0),),
    ),
    Case(
        "snapshot of a newer version", read_snapshot, SNAPSHOT, b"\0\2" + snapshot_bytes(IDLE)[2:],
        "producers", (), ((ProblemKind.UNKNOWN_FORMAT, 0),),
    ),
    Case("index", read_transaction_index, INDEX, index_bytes(*ABORTED), "aborted", ABORTED),
    Case("index without aborts", read_transaction_index, INDEX, b"", "aborted", ()),
    Case(
        "index cut within an entry", read_transaction_index, INDEX, index_bytes(*ABORTED)[:-4],
        "aborted", ABORTED[:1], ((ProblemKind.TRUNCATED, 34),),
    ),
    Case(
        "index of a newer version", read_transaction_index, INDEX, index_bytes(ABORTED[0]) + b"\0\1" + bytes(32),
        "aborted", ABORTED[:1], ((ProblemKind.UNKNOWN_FORMAT, 34),),
    ),
    Case(
        "offsets", read_offsets, HIGH_WATERMARKS, checkpoint_text("orders-eu 0 10", "__consumer_offsets 49 0"),
        "offsets", {TopicPartition("orders-eu", 0): 10, TopicPartition("__consumer_offsets", 49): 0},
    ),
    Case(
        "a line that is none", read_offsets, HIGH_WATERMARKS, checkpoint_text("a 0 10", "a 1", "a 2 12"),
        "offsets", {TopicPartition("a", 0): 10, TopicPartition("a", 2): 12}, ((ProblemKind.BAD_RECORD, 11),),
    ),
    Case(
        "offsets cut short", read_offsets, HIGH_WATERMARKS, checkpoint_text("a 0 10", count=2),
        "offsets", {TopicPartition("a", 0): 10}, ((ProblemKind.TRUNCATED, 11),),
    ),
    Case("offsets of others", read_offsets, HIGH_WATERMARKS, "host=a\n", "offsets", {}, ((ProblemKind.UNKNOWN_FORMAT, 0),)),
    Case("empty checkpoint", read_offsets, HIGH_WATERMARKS, "", "offsets", {}),  # a new broker's
    Case("epochs", read_epochs, EPOCHS, checkpoint_text("0 0", "2 10"), "epochs", (EpochStart(0, 0), EpochStart(2, 10))),
    Case(
        "epochs, no number", read_epochs, EPOCHS, checkpoint_text("0 0", "2 x"),
        "epochs", (EpochStart(0, 0),), ((ProblemKind.BAD_RECORD, 8),),
    ),
    Case(
        "topic id", read_partition_metadata, "partition.metadata", f"version: 0\ntopic_id: {TOPIC_ID}", "topic_id", TOPIC_ID,
    ),
    Case(
        "no topic id", read_partition_metadata, "partition.metadata", "version: 0\n", "topic_id", None,
        ((ProblemKind.BAD_RECORD, 0),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_there_is_read_and_what_is_not_has_its_position(tmp_path: Path, case: Case) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
    contents = case.read(path)
    assert getattr(contents, case.of) == case.expected
    found = tuple((problem.kind, problem.position) for problem in contents.problems)
    assert found == case.problems
    assert all(problem.path == str(path) for problem in contents.problems)


@pytest.mark.parametrize(
    "read",
    [read_snapshot, read_transaction_index, read_offsets, read_epochs, read_partition_metadata],
)
def test_what_cannot_be_opened_is_a_problem(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    [problem] = read(tmp_path / SNAPSHOT).problems
    assert problem.kind is ProblemKind.NOT_READABLE


def test_a_snapshot_of_a_broker(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000006.snapshot"
    path.write_bytes(OF_KAFKA)
    snapshot = read_snapshot(path)
    assert (snapshot.offset, snapshot.problems) == (6, ())
    assert snapshot.producers == (
        ProducerEntry(
            producer_id=1, producer_epoch=0, last_sequence=3, last_offset=4, offset_delta=1,
            timestamp_ms=1_795_263_742_817, coordinator_epoch=0,
        ),
    )  # fmt: skip
    assert snapshot.producers[0].first_sequence == 2
