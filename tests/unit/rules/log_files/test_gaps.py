"""What is missing between batches, in offsets and in sequences, and what is only seemingly missing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rules.facts.identity import TopicPartition
from rules.facts.log_findings import OffsetGapReason, SequenceGapReason
from rules.facts.log_folders import PartitionLog
from rules.facts.log_states import ProducerEntry, ProducerSnapshot
from rules.verdict import Verdict
from tests.unit.rules.log_files.logs import (
    PROBLEM,
    Part,
    analyse,
    batch,
    marker,
    transactional,
)

LAST = 2**31 - 1
OF_GROUPS = PartitionLog(folder="/d/x", name=TopicPartition("__consumer_offsets", 4))
FOLDER = PartitionLog(folder="/d/orders-3")
SEEDED = PartitionLog(
    folder="/d/orders-3",
    snapshots=(
        ProducerSnapshot(
            path="/d/orders-3/00000000000000000100.snapshot", offset=100,
            producers=(ProducerEntry(producer_id=7, producer_epoch=0, last_sequence=99, last_offset=99),),
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    id: str
    why: str
    segments: tuple[list[Part], ...]
    gaps: list[tuple[int, int, SequenceGapReason]]  # expected, base sequence, reason
    log: PartitionLog | None = None


R = SequenceGapReason
CASES = (
    Case("in order", "each batch begins behind the one before", ([batch(0, 4), batch(5)],), []),
    Case(
        "missing", "offsets follow each other, sequences do not", ([batch(0, 4), batch(5, base_sequence=8)],),
        [(5, 8, R.SEQUENCES_MISSING)],
    ),
    Case(
        "wrap", "0 follows 2^31-1", ([batch(0, 1, base_sequence=0), batch(2, 3, base_sequence=2)],), [],
    ),
    Case(
        "wrap within a batch", "the second batch crosses the wrap",
        ([batch(100, 101, base_sequence=LAST - 3), batch(102, 105, base_sequence=LAST - 1), batch(106, base_sequence=2)],),
        [(0, LAST - 3, R.LOG_STARTS_LATER)], FOLDER,
    ),
    Case(
        "missing at the wrap", "3 comes where 0 was to come",
        ([batch(100, base_sequence=LAST), batch(101, base_sequence=3)],),
        [(0, LAST, R.LOG_STARTS_LATER), (0, 3, R.SEQUENCES_MISSING)], FOLDER,
    ),
    Case(
        "repeated", "the same sequences once more", ([batch(0, 4), batch(5, 6, base_sequence=3)],),
        [(5, 3, R.SEQUENCES_REPEATED)],
    ),
    Case(
        "restarted", "from 0 in the same epoch", ([batch(0, 4), batch(5, base_sequence=0)],),
        [(5, 0, R.SEQUENCE_RESTARTED)],
    ),
    Case(
        "new epoch", "begins at 0", ([batch(0, 4), batch(5, producer_epoch=1, base_sequence=0)],), [],
    ),
    Case(
        "new epoch above 0", "its first records are not in the log",
        ([batch(0, 4), batch(5, producer_epoch=1, base_sequence=2)],), [(0, 2, R.SEQUENCES_MISSING)],
    ),
    Case(
        "old epoch", "a fenced producer cannot write", ([batch(0, producer_epoch=1), batch(1, base_sequence=1)],),
        [(1, 1, R.EPOCH_WENT_BACK)],
    ),
    Case(
        "marker of a new epoch", "transactions v2: each ends with the next epoch",
        ([transactional(0, 1), marker(2, producer_epoch=1), transactional(3, producer_epoch=1, base_sequence=0)],), [],
    ),
    Case(
        "marker of the same epoch", "transactions v1: sequences go on",
        ([transactional(0, 1), marker(2), transactional(3, base_sequence=2)],), [],
    ),
    Case(
        "first in a whole log", "its first batch has sequence 4", ([batch(0, base_sequence=4)],),
        [(0, 4, R.STARTS_ABOVE_ZERO)],
    ),
    Case(
        "first in a cut log", "retention deleted what it wrote before", ([batch(100)],),
        [(0, 100, R.LOG_STARTS_LATER)], FOLDER,
    ),
    Case("first after a snapshot", "the broker knew it", ([batch(100)],), [], SEEDED),
    Case(
        "missing after a snapshot", "the broker knew it, and sequences are missing", ([batch(100, base_sequence=103)],),
        [(100, 103, R.SEQUENCES_MISSING)], SEEDED,
    ),
    Case(
        "compacted", "offsets are missing too", ([batch(0, 4), batch(8, base_sequence=8)],),
        [(5, 8, R.OFFSETS_MISSING_BETWEEN)],
    ),
    Case(
        "a hole before both", "what is missing before the two explains nothing",
        ([batch(0, producer_id=8), batch(3, 4, base_sequence=0), batch(5, base_sequence=8)],),
        [(2, 8, R.SEQUENCES_MISSING)],
    ),
    Case(
        "damaged between", "a batch cannot be read", ([batch(0, 4), PROBLEM], [batch(6, base_sequence=6)]),
        [(5, 6, R.OFFSETS_MISSING_BETWEEN)],
    ),
    Case(
        "written by a coordinator", "the commits of a transaction all have sequence 0 since 4.0",
        ([transactional(0, base_sequence=0), transactional(1, base_sequence=0), marker(2)],), [], OF_GROUPS,
    ),
    Case(
        "written by an older coordinator", "commits within transactions have no sequences",
        ([transactional(0, base_sequence=None), transactional(1, base_sequence=None), marker(2)],), [],
    ),
    Case(
        "another producer", "each has its own sequences", ([batch(0, 4), batch(5, producer_id=8, base_sequence=0)],), [],
    ),
    Case("no producer", "not idempotent", ([batch(0, producer_id=None, producer_epoch=None, base_sequence=None)],), []),
)  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 2, 99])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_sequences(case: Case, at_once: int) -> None:
    found = analyse(*case.segments, log=case.log, at_once=at_once)
    gaps = [(gap.expected_sequence, gap.base_sequence, gap.reason) for gap in found.sequence_gaps]
    assert gaps == case.gaps, case.why
    assert found.sequence_gap_count == len(case.gaps)


def test_a_gap_says_where_it_is() -> None:
    [gap] = analyse([batch(0, 4), batch(5, 6, base_sequence=9)]).sequence_gaps
    assert (gap.producer_id, gap.producer_epoch, gap.after_offset, gap.offset) == (7, 0, 4, 5)
    assert gap.verdict is Verdict.BREACH


THINNED = batch(8, 12, record_count=2)
O = OffsetGapReason  # noqa: E741 - as short as R


@pytest.mark.parametrize("at_once", [1, 99])
@pytest.mark.parametrize(
    ("segments", "gaps"),
    [
        pytest.param(([batch(0, 4), batch(5)],), [], id="none"),
        pytest.param(([batch(0, 4), batch(8)],), [(5, 8, O.NOT_EXPLAINED)], id="within a segment"),
        pytest.param(([batch(0, 4)], [batch(8)]), [(5, 8, O.BETWEEN_SEGMENTS)], id="between segments"),
        pytest.param(([batch(0, 4), PROBLEM], [batch(8)]), [(5, 8, O.UNREADABLE)], id="behind a damaged end"),
        pytest.param(([batch(0, 4), PROBLEM, batch(8)],), [(5, 8, O.UNREADABLE)], id="at a damaged batch"),
        pytest.param(([batch(0, 4), THINNED],), [(5, 8, O.COMPACTED)], id="compacted"),
        pytest.param(([batch(0, 4), PROBLEM, THINNED],), [(5, 8, O.UNREADABLE)], id="compacted and damaged"),
        pytest.param(
            ([batch(0), batch(3)], [batch(5), batch(9)]),
            [(1, 3, O.NOT_EXPLAINED), (4, 5, O.BETWEEN_SEGMENTS), (6, 9, O.NOT_EXPLAINED)], id="several",
        ),
    ],
)  # fmt: skip
def test_offsets(
    segments: tuple[list[Part], ...],
    gaps: list[tuple[int, int, OffsetGapReason]],
    at_once: int,
) -> None:
    found = analyse(*segments, at_once=at_once)
    assert [(gap.start, gap.end, gap.reason) for gap in found.offset_gaps] == gaps


def test_a_first_batch_behind_its_segments_base_is_a_gap() -> None:
    found = analyse([batch(0)], [batch(3)], log=FOLDER)
    assert [(gap.start, gap.end) for gap in found.offset_gaps] == [(1, 3)]
