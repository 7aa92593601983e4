"""Transactions, producers, epochs and writers without ids, as the batches of a log show them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.log_files import Codec
from rules.facts.log_findings import Difference, EndedTransaction, EpochRange, NotIdempotent
from rules.facts.log_folders import PartitionLog
from rules.facts.log_states import (
    AbortedEntry,
    EpochCheckpoint,
    EpochStart,
    ProducerEntry,
    ProducerSnapshot,
    TransactionIndex,
)
from rules.verdict import Verdict
from tests.unit.rules.log_files.logs import Part, analyse, batch, marker, transactional

LOG: list[Part] = [
    transactional(0, 4),
    batch(5, 6, producer_id=None, producer_epoch=None, base_sequence=None, max_timestamp_ms=3000),
    marker(7),
    transactional(8, 9, base_sequence=5),
    marker(10, is_commit=False),
    marker(11, is_commit=False),
    transactional(12, producer_id=9, base_sequence=0, attributes=0x12, leader_epoch=2),
    transactional(13, base_sequence=7, leader_epoch=2),
]


def test_transactions() -> None:
    found = analyse([*LOG])
    assert (found.committed, found.aborted) == (1, 2)
    assert [(each.producer_id, each.first_offset) for each in found.open_transactions] == [
        (9, 12),
        (7, 13),
    ]
    assert found.aborted_transactions == (
        EndedTransaction(
            producer_id=7, producer_epoch=0, is_commit=False, first_offset=8, marker_offset=10, coordinator_epoch=3,
        ),
        EndedTransaction(
            producer_id=7, producer_epoch=0, is_commit=False, first_offset=None, marker_offset=11, coordinator_epoch=3,
        ),
    )  # fmt: skip
    assert (found.log_start_offset, found.last_stable_offset, found.log_end_offset) == (0, 12, 14)


def test_producers() -> None:
    first, second = analyse([*LOG]).producers
    assert first.entry == ProducerEntry(
        producer_id=7, producer_epoch=0, last_sequence=7, last_offset=13, timestamp_ms=2000, coordinator_epoch=3,
        current_transaction_start_offset=13,
    )  # fmt: skip
    assert (first.first_offset, first.batches, first.records, first.is_transactional) == (
        0,
        3,
        8,
        True,
    )
    assert (second.entry.producer_id, second.entry.coordinator_epoch) == (9, None)


def test_writers_without_producer_ids() -> None:
    assert analyse([*LOG]).not_idempotent == NotIdempotent(
        batches=1, records=2, first_offset=5, last_offset=6, last_timestamp_ms=3000
    )


def test_epochs_and_segments_whatever_the_blocks_are() -> None:
    whole = analyse([*LOG])
    assert whole.epochs == (
        EpochRange(leader_epoch=0, first_offset=0, last_offset=11, batches=6),
        EpochRange(leader_epoch=2, first_offset=12, last_offset=13, batches=2),
    )
    [segment] = whole.segments
    assert (segment.batches, segment.records, segment.size) == (8, 11, 800)
    assert segment.codecs == {Codec.NONE, Codec.SNAPPY}
    assert (segment.min_timestamp_ms, segment.max_timestamp_ms) == (1000, 3000)
    for at_once in range(1, 8):
        assert analyse([*LOG], at_once=at_once) == whole


def test_a_log_without_batches() -> None:
    found = analyse([])
    assert (found.log_end_offset, found.last_stable_offset, found.offset_gaps) == (None, None, ())


AT_12 = (
    ProducerEntry(producer_id=7, producer_epoch=0, last_sequence=6, last_offset=9, offset_delta=1, coordinator_epoch=3),
)  # fmt: skip
OPEN_AT_14 = (
    replace(AT_12[0], last_sequence=7, last_offset=13, offset_delta=0, current_transaction_start_offset=13),
    ProducerEntry(producer_id=9, producer_epoch=0, last_sequence=0, last_offset=12, current_transaction_start_offset=12),
)  # fmt: skip
EXPIRED = ProducerEntry(producer_id=3, producer_epoch=0, last_sequence=0, last_offset=5)


@pytest.mark.parametrize("at_once", [1, 5, 99])
@pytest.mark.parametrize(
    ("offset", "producers", "expected"),
    [
        pytest.param(12, AT_12, [], id="within the log"),
        pytest.param(14, OPEN_AT_14, [], id="at its end"),
        pytest.param(99, AT_12, [], id="beyond its end: it is not compared"),
        pytest.param(
            12, (replace(AT_12[0], last_sequence=5),), [(Difference.PRODUCER_STATE, Verdict.BREACH)], id="another sequence",
        ),
        pytest.param(
            14, (replace(OPEN_AT_14[0], current_transaction_start_offset=None), OPEN_AT_14[1]),
            [(Difference.PRODUCER_STATE, Verdict.BREACH)], id="no open transaction",
        ),
        pytest.param(12, (), [(Difference.PRODUCER_MISSING, Verdict.UNKNOWN)], id="expired for the broker"),
        pytest.param(
            12, (*AT_12, EXPIRED), [(Difference.PRODUCER_STATE, Verdict.UNKNOWN)], id="not in the log",
        ),
    ],
)  # fmt: skip
def test_a_snapshot_is_compared_with_the_batches_before_it(
    offset: int,
    producers: tuple[ProducerEntry, ...],
    expected: list[tuple[Difference, Verdict]],
    at_once: int,
) -> None:
    snapshot = ProducerSnapshot(path="s", offset=offset, producers=producers)
    log = PartitionLog(folder="/d/orders-3", snapshots=(snapshot,))
    found = analyse([*LOG], log=log, at_once=at_once)
    assert [(each.kind, each.verdict) for each in found.differences] == expected


@pytest.mark.parametrize(
    ("entries", "verdicts"),
    [
        pytest.param((AbortedEntry(7, 8, 10, 8),), [], id="equal; an abort of nothing has no entry"),
        pytest.param((AbortedEntry(7, 7, 10, 8),), [Verdict.BREACH], id="another first offset"),
        pytest.param(
            (AbortedEntry(7, 8, 10, 8), AbortedEntry(9, 1, 2, 2)), [Verdict.UNKNOWN], id="without its marker",
        ),
        pytest.param((), [Verdict.UNKNOWN], id="a marker without its entry"),
    ],
)  # fmt: skip
def test_a_transaction_index_is_compared_with_the_markers(
    entries: tuple[AbortedEntry, ...], verdicts: list[Verdict]
) -> None:
    index = TransactionIndex(path="i", base_offset=0, aborted=entries)
    log = PartitionLog(folder="/d/orders-3", transaction_indexes=(index,))
    assert [each.verdict for each in analyse([*LOG], log=log).differences] == verdicts


@pytest.mark.parametrize(
    ("epochs", "verdicts"),
    [
        pytest.param([(0, 0), (2, 12)], [], id="equal"),
        pytest.param([(0, 0), (1, 12), (2, 12)], [], id="an epoch without batches"),
        pytest.param([(0, 0)], [Verdict.UNKNOWN], id="the last one is not noted"),
        pytest.param([(0, 0), (2, 13)], [Verdict.BREACH], id="a batch before its epoch"),
        pytest.param([(0, 0), (2, 11)], [Verdict.BREACH], id="a batch behind its epoch"),
    ],
)
def test_the_leader_epoch_checkpoint_is_compared_with_the_batches(
    epochs: list[tuple[int, int]], verdicts: list[Verdict]
) -> None:
    checkpoint = EpochCheckpoint(path="e", epochs=tuple(EpochStart(*each) for each in epochs))
    log = PartitionLog(folder="/d/orders-3", epochs=checkpoint)
    assert [each.verdict for each in analyse([*LOG], log=log).differences] == verdicts


def test_a_leader_epoch_that_goes_back_is_a_contradiction() -> None:
    checkpoint = EpochCheckpoint(path="e", epochs=(EpochStart(0, 0), EpochStart(1, 0)))
    log = PartitionLog(folder="/d/orders-3", epochs=checkpoint)
    found = analyse([batch(0, leader_epoch=1), batch(1)], log=log)
    assert Verdict.BREACH in {each.verdict for each in found.differences}
