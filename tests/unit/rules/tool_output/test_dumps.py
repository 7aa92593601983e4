"""What `kafka-dump-log` shows of a part of a log: transactions, producers, gaps, and what it does not show."""

from __future__ import annotations

import pytest

from rules.facts.tool_output import (
    DumpedAbort,
    DumpedBatch,
    DumpedCommit,
    DumpedFile,
    DumpedProducer,
    DumpedRecord,
    Marker,
    ToolFact,
)
from rules.tool_output.dumps import judge_dumps
from rules.tool_output.reasons import Reason

FILE = DumpedFile(line=1, path="/d/orders-3/00000000000000000000.log", topic="orders", partition=3)
INDEX = DumpedFile(line=1, path="/d/orders-3/0.txnindex", topic="orders", partition=3)
OFFSETS = DumpedFile(line=1, path="/d/__consumer_offsets-3/0.log", topic="__consumer_offsets", partition=3)  # fmt: skip


def batch(
    base: int, last: int, sequence: int | None, *, producer: int | None = 9, epoch: int = 0, is_transactional: bool = False,
    is_control: bool = False, is_valid: bool = True, leader: int = 0,
) -> DumpedBatch:  # fmt: skip
    count = last - base + 1
    return DumpedBatch(
        line=base + 2, base_offset=base, last_offset=last, record_count=count, base_sequence=sequence,
        last_sequence=None if sequence is None else sequence + count - 1, producer_id=producer, producer_epoch=epoch,
        leader_epoch=leader, is_transactional=is_transactional, is_control=is_control, timestamp_ms=1000, is_valid=is_valid,
    )  # fmt: skip


def open_batch(base: int, last: int, sequence: int) -> DumpedBatch:
    return batch(base, last, sequence, is_transactional=True)


def end(offset: int, marker: Marker | None = None) -> list[ToolFact]:
    control: list[ToolFact] = [batch(offset, offset, None, is_transactional=True, is_control=True)]
    if marker is not None:
        control.append(DumpedRecord(line=offset + 2, offset=offset, sequence=None, marker=marker, coordinator_epoch=0))  # fmt: skip
    return control


def commit(offset: int | None, line: int = 2) -> DumpedCommit:
    return DumpedCommit(line=line, group="g", topic="orders", partition=0, offset=offset, commit_ms=None)  # fmt: skip


SHOWN = {Reason.PRODUCERS, Reason.LOG_READ}
CASES: dict[str, tuple[list[ToolFact], set[Reason]]] = {
    "in order": ([FILE, batch(0, 2, 0), batch(3, 5, 3)], SHOWN),
    "committed": ([FILE, open_batch(0, 2, 0), *end(3, Marker.COMMIT)], SHOWN),
    "aborted": ([FILE, open_batch(0, 2, 0), *end(3, Marker.ABORT)], {*SHOWN, Reason.TRANSACTIONS_ABORTED}),
    "ended without --deep-iteration": ([FILE, open_batch(0, 2, 0), *end(3)], {*SHOWN, Reason.OUTCOME_NOT_SHOWN}),
    "ended without --deep-iteration, and the index says how": (
        [FILE, open_batch(0, 2, 0), *end(3), INDEX, DumpedAbort(line=9, producer_id=9, first_offset=0, last_offset=3, last_stable_offset=4)],
        {*SHOWN, Reason.TRANSACTIONS_ABORTED},
    ),
    "open": ([FILE, open_batch(0, 2, 0)], {*SHOWN, Reason.OPEN_AT_END_OF_TEXT}),
    "sequences missing": ([FILE, batch(0, 2, 0), batch(3, 5, 9)], {*SHOWN, Reason.SEQUENCES_MISSING}),
    "sequences missing where offsets are": (
        [FILE, batch(0, 2, 0), batch(9, 11, 9)], {*SHOWN, Reason.SEQUENCES_NOT_DECIDED, Reason.OFFSETS_NOT_SHOWN},
    ),
    "sequences again": ([FILE, batch(0, 2, 0), batch(3, 5, 3), batch(6, 8, 3)], {*SHOWN, Reason.SEQUENCES_REPEATED}),
    "a part of a log that begins anywhere": ([FILE, batch(7, 9, 70), batch(10, 12, 73)], SHOWN),
    "the wrap of sequences": ([batch(7, 7, 2**31 - 1), batch(8, 9, 0)], SHOWN),
    "a new epoch begins at 0": ([FILE, batch(0, 2, 0), batch(3, 5, 0, epoch=1)], SHOWN),
    "not idempotent": ([FILE, batch(0, 2, None, producer=None)], {Reason.LOG_READ, Reason.WRITER_NOT_IDEMPOTENT}),
    "not idempotent in a topic of Kafka's own": ([OFFSETS, batch(0, 2, None, producer=None)], {Reason.LOG_READ}),
    "a wrong checksum": ([FILE, batch(0, 2, 0, is_valid=False)], {*SHOWN, Reason.BATCH_INVALID}),
    "a record alone": ([DumpedRecord(line=1, offset=3, sequence=None, marker=Marker.ABORT, coordinator_epoch=0)], {Reason.RECORDS_ALONE}),
    "a snapshot": (
        [DumpedProducer(line=2, producer_id=9, producer_epoch=0, coordinator_epoch=0, transaction_start_offset=5, last_sequence=2, last_offset=7, timestamp_ms=1)],
        {Reason.PRODUCERS, Reason.OPEN_IN_SNAPSHOT},
    ),
    "commits": ([commit(5), commit(7)], {Reason.COMMITS}),
    "a commit that went back": ([commit(7), commit(5)], {Reason.COMMITS, Reason.COMMIT_WENT_BACK}),
    "a commit that was removed": ([commit(7), commit(None)], {Reason.COMMITS}),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "reasons"), CASES.values(), ids=CASES)
def test_reasons(facts: list[ToolFact], reasons: set[Reason]) -> None:
    assert {each.reason for each in judge_dumps(facts)} == reasons


def test_two_replicas_in_one_text_are_two_logs() -> None:
    findings = judge_dumps([FILE, batch(0, 2, 0), batch(3, 5, 3), batch(0, 2, 0), batch(3, 3, 3)])
    (read,) = (each for each in findings if each.reason is Reason.LOG_READ)
    assert [item.words.split(" in ")[0] for item in read.items] == [
        "orders-3: offsets 0 to 5",
        "orders-3: offsets 0 to 3",
    ]
    assert {each.reason for each in findings} == SHOWN


def test_leader_epochs_and_ends_are_counted() -> None:
    facts = [FILE, open_batch(0, 2, 0), *end(3, Marker.COMMIT), batch(4, 5, 3, leader=2), *end(6)]
    (read,) = (each for each in judge_dumps(facts) if each.reason is Reason.LOG_READ)
    assert read.items[0].words == (
        "orders-3: offsets 0 to 6 in 4 batches; leader epoch 0 from offset 0, 2 from offset 4, 0 from offset 6; "
        "transactions: 1 committed, 0 aborted, 1 ended either way"
    )
