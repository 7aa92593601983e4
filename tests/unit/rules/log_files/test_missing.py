"""What became of each batch behind the divergence: a wrong "lost" would make duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rules.facts.log_files import LOG_APPEND_TIME_BIT, ControlType, LogBatch
from rules.facts.rejections import SEQUENCES
from rules.log_files import missing as missing_batches
from rules.log_files.missing import Fate, MissingBatches, Outcome, proven_high_watermark
from tests.unit.rules.log_files.old_batches import PRODUCER, batch, in_transaction, marker

ABORT = ControlType.ABORT
HIGH_WATERMARK = 100


def compared(
    old: Sequence[LogBatch], new: Sequence[LogBatch] = (), *, is_cut: bool = False
) -> MissingBatches:
    missing = MissingBatches(divergence=10, is_cut=is_cut)
    missing.take_old(old)
    for each in new:
        missing.take_new(each)
    return missing


def fates(missing: MissingBatches, high_watermark: int | None = HIGH_WATERMARK) -> list[Fate]:
    return [each.fate(high_watermark) for each in missing.batches]


@pytest.mark.parametrize(
    ("old", "new", "fate"),
    [
        pytest.param(batch(10, 14), [], Fate.LOST, id="committed, and nowhere else"),
        pytest.param(
            batch(10, 14), [batch(20, 24, base_sequence=10, crc=1010)], Fate.AGAIN,
            id="its producer got no answer and sent the same batch to the new leader",
        ),
        pytest.param(
            batch(10, 14), [batch(20, 24, base_sequence=10, producer_epoch=1, crc=1010)], Fate.LOST,
            id="another epoch begins its own sequences: headers do not show whether it is the same",
        ),
        pytest.param(
            batch(10, 14), [batch(20, 24, base_sequence=10, producer_id=8, crc=1010)], Fate.LOST,
            id="so does another producer",
        ),
        pytest.param(
            batch(10, 14), [batch(20, 24, base_sequence=10, crc=5)], Fate.SEQUENCE_REUSED,
            id="a client that reuses sequences wrote other records under them",
        ),
        pytest.param(
            batch(10, 14, attributes=LOG_APPEND_TIME_BIT),
            [batch(20, 24, base_sequence=10, crc=5, attributes=LOG_APPEND_TIME_BIT)], Fate.AGAIN,
            id="with LogAppendTime each leader writes its own time, and checksum",
        ),
        pytest.param(
            batch(10, 14), [batch(20, 22, base_sequence=12, crc=5)], Fate.SEQUENCE_REUSED,
            id="the sequences overlap in other batches",
        ),
        pytest.param(
            batch(10, 14, base_sequence=SEQUENCES - 2),
            [batch(20, 20, base_sequence=1, crc=5)], Fate.SEQUENCE_REUSED,
            id="also where they wrap to 0",
        ),
        pytest.param(
            batch(10, 14), [batch(20, 24, base_sequence=15, crc=5)], Fate.LOST,
            id="the next batch of the producer says nothing of it",
        ),
        pytest.param(
            batch(10, 14, producer_id=None, base_sequence=None),
            [batch(20, 24, producer_id=None, base_sequence=None, crc=1010)], Fate.LOST,
            id="without a producer id headers recognize nothing",
        ),
    ],
)  # fmt: skip
def test_a_batch_that_was_sent_again_is_not_lost(
    old: LogBatch, new: list[LogBatch], fate: Fate
) -> None:
    missing = compared([old], new)
    assert fates(missing) == [fate]
    if fate is Fate.AGAIN:
        assert missing.batches[0].match_offset == 20


@pytest.mark.parametrize(
    ("old", "new", "fate", "outcome"),
    [
        pytest.param([marker(15)], [], Fate.LOST, Outcome.COMMITTED, id="committed in the copy"),
        pytest.param([marker(15, ABORT)], [], Fate.ABORTED, Outcome.ABORTED, id="aborted there"),
        pytest.param([], [], Fate.UNDECIDED, Outcome.UNDECIDED, id="without an end"),
        pytest.param(
            [], [marker(10)], Fate.LOST, Outcome.COMMITTED,
            id="the coordinator wrote its marker to the new leader",
        ),
        pytest.param(
            [], [marker(10, producer_epoch=1)], Fate.LOST, Outcome.COMMITTED,
            id="with the next epoch (transactions v2)",
        ),
        pytest.param(
            [], [marker(10, ABORT, producer_epoch=1)], Fate.ABORTED, Outcome.ABORTED,
            id="a timeout aborted it",
        ),
        pytest.param(
            [], [marker(10, producer_epoch=2)], Fate.UNDECIDED, Outcome.UNDECIDED,
            id="a marker of a later transaction is not its own",
        ),
        pytest.param(
            [], [marker(10, producer_epoch=2), marker(11, producer_epoch=1)],
            Fate.UNDECIDED, Outcome.UNDECIDED, id="nor is one behind that",
        ),
        pytest.param(
            [marker(15, producer_id=8)], [], Fate.UNDECIDED, Outcome.UNDECIDED,
            id="nor that of another producer",
        ),
    ],
)  # fmt: skip
def test_the_end_of_its_transaction_decides(
    old: list[LogBatch], new: list[LogBatch], fate: Fate, outcome: Outcome
) -> None:
    missing = compared([in_transaction(10, 14), *old], new)
    assert (fates(missing), missing.batches[0].outcome) == ([fate], outcome)


def test_a_copy_that_is_cut_may_have_had_the_marker_itself() -> None:
    missing = compared([in_transaction(10, 14)], [marker(10)], is_cut=True)
    assert fates(missing) == [Fate.UNDECIDED]


def test_a_marker_behind_missing_offsets_may_be_of_another_transaction() -> None:
    missing = compared([in_transaction(10, 14), marker(20)])
    assert (fates(missing), missing.gaps) == ([Fate.UNDECIDED], [(15, 20)])


def test_a_marker_behind_what_is_left_out_may_be_of_another_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing_batches, "MAX_BATCHES", 1)
    missing = compared([in_transaction(10, 14), marker(15, ABORT)], [marker(30)])
    assert (fates(missing), missing.stopped_at) == ([Fate.UNDECIDED], 15)


def test_offsets_that_the_new_log_lacks_are_noted() -> None:
    missing = compared([batch(10, 14)], [batch(9, 11, crc=5), batch(12, 12), batch(20, 21)])
    assert missing.new_gaps == [(13, 20)]
    assert compared([batch(10, 14)], [batch(12, 12)]).new_gaps == [(10, 12)]


def test_only_what_is_proven_to_be_committed_is_lost() -> None:
    missing = compared([batch(10, 14), batch(15, 19)])
    beyond = Fate.BEYOND_HIGH_WATERMARK
    assert fates(missing, 15) == [Fate.LOST, beyond]
    assert fates(missing, None) == [beyond, beyond]
    assert missing.batches[0].fate(15, is_new_complete=False) is Fate.NOT_COMPARED


def test_a_committed_transaction_proves_what_lies_before_its_end() -> None:
    old = [batch(10, 14), in_transaction(15, 19, producer_id=8), batch(20, 20)]
    missing = compared([*old, marker(21, producer_id=8)])
    proven = proven_high_watermark([None, 12], missing.batches)
    assert proven == 20
    assert fates(missing, proven) == [Fate.LOST, Fate.LOST, Fate.BEYOND_HIGH_WATERMARK]
    aborted = compared([in_transaction(10, 14), marker(15, ABORT)])
    assert proven_high_watermark([12], aborted.batches) == 12


def test_what_both_logs_have_is_passed_over() -> None:
    missing = compared([batch(0, 9), batch(10, 11), marker(12, producer_id=PRODUCER)])
    assert [each.batch.base_offset for each in missing.batches] == [10]
    assert (missing.control_batches, missing.end) == (1, 13)
