"""What the numbers of rejected batches say without any cluster."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Final

import pytest

from rules.facts.broker_log import SequenceRejected
from rules.facts.rejections import rejection_of
from rules.facts.sequence_verdicts import SequenceClass, SequenceReason
from rules.sequence.explained import explain
from rules.sequence.numbers import gap_of, is_ahead
from rules.sequence.words import WORDS
from tests.unit.rules.sequence.lines import (
    BIGGEST,
    by_numbers,
    earliest_seen,
    expected_zero,
    new_epoch,
    rejected,
)

REORDERING, LOSS = SequenceClass.REORDERING, SequenceClass.LOSS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was rejected, and what the numbers say of it."""

    because: str
    lines: tuple[SequenceRejected, ...]
    class_: SequenceClass
    reason: str
    gap: int | None
    largest_batch: int | None = None


CASES: Final = {
    "expected-3-got-27": Case(
        because="24 records are more than five batches of one record",
        lines=(rejected(27, 2),),
        class_=LOSS,
        reason="large_gap",
        gap=24,
    ),
    "expected-2-got-3": Case(
        because="one batch overtook another",
        lines=(rejected(3, 1),),
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "as-many-as-in-flight": Case(
        because="the last of five batches arrived first",
        lines=(rejected(5, 0),),
        class_=REORDERING,
        reason="small_gap",
        gap=4,
    ),
    "one-more-than-in-flight": Case(
        because="six batches are not in flight at once",
        lines=(rejected(6, 0),),
        class_=LOSS,
        reason="large_gap",
        gap=5,
    ),
    "batches-of-100": Case(
        because="the step between two batches in flight is the size of one",
        lines=(rejected(101, 0), rejected(201, 0, second=10.1), rejected(301, 0, second=10.2)),
        class_=REORDERING,
        reason="small_gap",
        gap=100,
    ),
    "known-batches": Case(
        because="batches of this partition were seen to have 10 records",
        lines=(rejected(27, 2),),
        class_=REORDERING,
        reason="small_gap",
        gap=24,
        largest_batch=10,
    ),
    "known-single-records": Case(
        because="batches of this partition were never seen to have more than one",
        lines=(rejected(10, 4), rejected(15, 4)),
        class_=LOSS,
        reason="large_gap",
        gap=5,
        largest_batch=1,
    ),
    "the-nearest-counts": Case(
        because="those behind the nearest one had it rejected before them",
        lines=(rejected(2, 0), rejected(3, 0), rejected(4, 0), rejected(5, 0)),
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "the-same-three-times": Case(
        because="what is missing does not come",
        lines=tuple(rejected(4, 2, second=second) for second in (1, 2, 3)),
        class_=LOSS,
        reason="same_again",
        gap=1,
    ),
    "the-same-twice": Case(
        because="a reordering may be rejected twice before it heals",
        lines=(rejected(4, 2, second=1), rejected(4, 2, second=2)),
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "the-same-line-by-two-ways": Case(
        because="a line that comes by file and by HTTP is one line",
        lines=(rejected(4, 2),) * 3,
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "moves-on": Case(
        because="what was missing came, and then something else",
        lines=(rejected(27, 2), rejected(32, 30, second=11)),
        class_=REORDERING,
        reason="moves_on",
        gap=24,
    ),
    "moved-on-and-stuck": Case(
        because="the last of several gaps is a large one",
        lines=(rejected(5, 2), rejected(300, 30, second=11)),
        class_=LOSS,
        reason="large_gap",
        gap=269,
    ),
    "retry-of-what-is-there": Case(
        because="the sixth batch before the last one is not remembered",
        lines=(rejected(0, 5),),
        class_=SequenceClass.STALE_RETRY,
        reason="behind",
        gap=None,
    ),
    "retry-again-and-again": Case(
        because="it is there however often it comes",
        lines=tuple(rejected(4, 5, second=second) for second in range(5)),
        class_=SequenceClass.STALE_RETRY,
        reason="behind",
        gap=None,
    ),
    "earliest-seen": Case(
        because="the broker says itself that an earlier one came later",
        lines=(earliest_seen(300, 0),),
        class_=REORDERING,
        reason="earliest_seen",
        gap=300,
    ),
    "new-epoch": Case(
        because="five records of a new epoch are missing: it may be a reordering of larger batches",
        lines=(new_epoch(5, 1),),
        class_=LOSS,
        reason="large_gap",
        gap=5,
    ),
    "new-epoch-small": Case(
        because="it is a gap from sequence 0",
        lines=(new_epoch(3, 1),),
        class_=REORDERING,
        reason="small_gap",
        gap=3,
    ),
    "epochs-above-zero": Case(
        because="a client that never begins at 0 does not begin anew",
        lines=(new_epoch(5, 1), new_epoch(9, 2, second=11, current_epoch=0)),
        class_=SequenceClass.SEQUENCE_RESTART,
        reason="epochs_above_zero",
        gap=5,
    ),
    "epochs-that-were-taken-after-all": Case(
        because="the broker had epoch 1 when epoch 2 began: each was only overtaken at its start",
        lines=(new_epoch(2, 1), new_epoch(3, 2, second=11)),
        class_=REORDERING,
        reason="small_gap",
        gap=2,
    ),
    "expected-zero": Case(
        because="at a transaction's start it is a gap from sequence 0",
        lines=(expected_zero(3),),
        class_=REORDERING,
        reason="transaction_start",
        gap=3,
    ),
    "expected-zero-of-large-batches": Case(
        because="how many records its first batch has is not known",
        lines=(expected_zero(800),),
        class_=REORDERING,
        reason="transaction_start",
        gap=800,
    ),
    "expected-zero-and-more-than-in-flight": Case(
        because="five batches of two records are in flight at most",
        lines=(expected_zero(9),),
        class_=LOSS,
        reason="large_gap",
        gap=9,
        largest_batch=2,
    ),
    "expected-zero-in-one-transaction-after-the-other": Case(
        because="at another offset it is another transaction, although the numbers are the same",
        lines=tuple(expected_zero(8, second=n, offset=100 + 9 * n) for n in range(61)),
        class_=REORDERING,
        reason="transaction_start",
        gap=8,
    ),
    "expected-zero-at-one-offset-again-and-again": Case(
        because="the start of this transaction does not come",
        lines=tuple(expected_zero(8, second=n) for n in range(3)),
        class_=LOSS,
        reason="same_again",
        gap=8,
    ),
    "no-batch-of-the-epoch": Case(
        because="-1 is no sequence: all before the rejected one is missing",
        lines=(rejected(3, -1),),
        class_=REORDERING,
        reason="transaction_start",
        gap=3,
    ),
    "behind-markers": Case(
        because="Kafka 4.0 has -1 at the start of each transaction",
        lines=tuple(rejected(3, -1, second=n, offset=100 + 7 * n) for n in range(4)),
        class_=REORDERING,
        reason="transaction_start",
        gap=3,
    ),
    "the-same-sequences-in-one-transaction-after-the-other": Case(
        because="each transaction counts from 0: at another offset it is another batch",
        lines=tuple(rejected(4, 2, second=n, offset=100 + 9 * n) for n in range(4)),
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "wrap": Case(
        because="0 follows 2^31-1",
        lines=(rejected(1, BIGGEST),),
        class_=REORDERING,
        reason="small_gap",
        gap=1,
    ),
    "wrap-behind": Case(
        because="2^31-1 lies before 1",
        lines=(rejected(BIGGEST, 1),),
        class_=SequenceClass.STALE_RETRY,
        reason="behind",
        gap=None,
    ),
    "wrap-moves-on": Case(
        because="the last sequence moved over the wrap",
        lines=(rejected(3, BIGGEST - 1), rejected(9, 5, second=11)),
        class_=REORDERING,
        reason="moves_on",
        gap=4,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    said = by_numbers(case.lines, case.largest_batch)
    assert (said.class_, said.reason, said.gap) == (case.class_, case.reason, case.gap), (
        case.because
    )


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_order_of_lines_is_irrelevant(case: Case) -> None:
    said = by_numbers(case.lines, case.largest_batch)
    for lines in permutations(case.lines[:4]):
        assert by_numbers((*lines, *case.lines[4:]), case.largest_batch) == said


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_only_the_brokers_own_word_confirms_without_a_cluster(case: Case) -> None:
    explanation = explain(case.lines, case.largest_batch)
    assert (explanation.phase == "confirmed") == (explanation.reason == "earliest_seen")
    assert (explanation.verdict.at_most_records is not None) == (explanation.class_ is LOSS)
    assert explanation.verdict.lost_offsets is None


def test_the_textbook_case_is_explained_with_its_stats() -> None:
    explanation = explain([rejected(27, 2)])
    assert (explanation.gap, explanation.producer_id, explanation.topic, explanation.partition) == (
        24,
        7,
        "orders",
        0,
    )
    assert (explanation.offset, explanation.incoming_sequence, explanation.current_sequence) == (
        100,
        27,
        2,
    )
    assert explanation.verdict.at_most_records == 24
    assert explanation.evidence == {
        "rejections": 1,
        "distinct_rejections": 1,
        "smallest_gap": 24,
        "largest_batch": None,
        "records_per_batch": 1,
        "in_flight_records": 4,
    }
    assert explanation.needed_evidence is not None
    assert "tidemark loss ls" in explanation.check


def test_every_reason_has_words() -> None:
    assert set(WORDS) == set(SequenceReason)


@pytest.mark.parametrize(
    ("sequence", "of", "is_it"),
    [(1, 0, True), (0, 1, False), (0, 0, False), (0, BIGGEST, True), (BIGGEST, 0, False)],
)
def test_what_comes_after_what_goes_around(sequence: int, of: int, *, is_it: bool) -> None:
    assert is_ahead(sequence, of=of) is is_it


@pytest.mark.parametrize(("incoming", "current", "gap"), [(0, BIGGEST - 1, 1), (5, BIGGEST, 5)])
def test_a_gap_goes_over_the_wrap(incoming: int, current: int, gap: int) -> None:
    assert gap_of(rejection_of(rejected(incoming, current))) == gap


def test_ten_thousand_lines_are_judged_at_once() -> None:
    lines = [rejected(number + 3, number, offset=number) for number in range(10_000)]
    assert by_numbers(lines).class_ is REORDERING
