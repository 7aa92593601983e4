"""What a truth about sequences is put together from, and when it is rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.errors import SandboxError
from rules.facts.batches import BatchSeen
from rules.facts.broker_log import SequenceForm
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults import Client
from service.sandbox.faults.sequence_lines import Rejection
from service.sandbox.faults.sequence_truth import Expected, Seen, episode, gap_of

WHERE = TopicPartition("orders", 3)
REJECTION = Rejection(
    broker_id=BrokerId(2),
    form=SequenceForm.OUT_OF_ORDER,
    producer_id=7,
    offset=13,
    incoming_sequence=27,
    current_sequence=2,
    producer_epoch=None,
)
NEW_EPOCH = replace(REJECTION, form=SequenceForm.NEW_EPOCH, current_sequence=None, producer_epoch=1)
LAST = 2**31 - 1
EXPECTED = Expected(
    sequence_class=SequenceClass.LOSS, client=Client.RAW, producer_epoch=0, rejected=(27,)
)


def batch(base_sequence: int, count: int, base_offset: int, **changes: Any) -> BatchSeen:
    seen_batch = BatchSeen(
        base_offset=base_offset,
        last_offset=base_offset + count - 1,
        leader_epoch=4,
        producer_epoch=0,
        base_sequence=base_sequence,
        last_sequence=(base_sequence + count - 1) % 2**31,
        record_count=count,
    )
    return replace(seen_batch, **changes)


def seen(*batches: BatchSeen, rejections: tuple[Rejection, ...] = (REJECTION,)) -> Seen:
    return Seen(rejections=rejections, batches=batches, leader_epoch=5)


@pytest.mark.parametrize(
    ("incoming", "current", "gap"),
    [
        pytest.param(27, 2, 24, id="the textbook"),
        pytest.param(3, -1, 3, id="nothing of the epoch"),
        pytest.param(3, LAST, 3, id="around the wrap"),
        pytest.param(0, LAST - 2, 2, id="to the wrap"),
        pytest.param(0, 17, None, id="behind"),
        pytest.param(LAST, 2, None, id="behind the wrap"),
        pytest.param(4, 5, None, id="one behind"),
    ],
)
def test_the_gap_counts_the_records_that_are_missing_before(
    incoming: int, current: int, gap: int | None
) -> None:
    rejection = replace(REJECTION, incoming_sequence=incoming, current_sequence=current)
    assert gap_of(rejection) == gap


def test_without_a_sequence_before_the_gap_is_counted_from_zero() -> None:
    assert gap_of(NEW_EPOCH) == 27


def test_a_gap_that_never_healed_tells_where_the_batch_before_lies() -> None:
    expected = replace(EXPECTED, rejected=(27, 27))
    outcome = episode(WHERE, expected, seen(batch(0, 3, 10), rejections=(REJECTION, REJECTION)))
    assert (outcome.gap, outcome.lines, outcome.partition, outcome.broker_id) == (24, 2, 3, 2)
    assert (outcome.appended_epoch, outcome.leader_epoch) == (4, 5)
    assert (outcome.is_healed, outcome.last_epoch) == (False, 0)


def test_a_gap_heals_when_the_rejected_batch_comes_behind_it_in_the_same_epoch() -> None:
    healing = (batch(0, 3, 10), batch(3, 24, 13), batch(27, 5, 37))
    assert episode(WHERE, EXPECTED, seen(*healing)).is_healed


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(batch(27, 5, 37, producer_epoch=1), id="in another epoch"),
        pytest.param(batch(27, 5, 8), id="in front of it"),
        pytest.param(batch(22, 5, 37), id="other sequences"),
    ],
)
def test_another_batch_heals_nothing(other: BatchSeen) -> None:
    assert not episode(WHERE, EXPECTED, seen(batch(0, 3, 10), other)).is_healed


def test_of_a_lost_epoch_nothing_is_left() -> None:
    expected = replace(EXPECTED, form=SequenceForm.NEW_EPOCH, producer_epoch=1)
    outcome = episode(WHERE, expected, seen(batch(0, 3, 10), rejections=(NEW_EPOCH,)))
    assert (outcome.gap, outcome.appended_epoch, outcome.last_epoch) == (27, None, 0)
    nothing = episode(WHERE, expected, seen(rejections=(NEW_EPOCH,)))
    assert nothing.last_epoch is None


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        pytest.param(replace(EXPECTED, rejected=(27, 27)), "rejected sequences", id="more lines"),
        pytest.param(replace(EXPECTED, form=SequenceForm.NEW_EPOCH), "form", id="another form"),
        pytest.param(replace(EXPECTED, current_sequence=3), "sequence before", id="another end"),
        pytest.param(
            replace(EXPECTED, sequence_class=SequenceClass.REORDERING, is_healed=True),
            "healing",
            id="no healing",
        ),
    ],
)
def test_what_was_not_to_be_made_is_rejected(expected: Expected, error: str) -> None:
    with pytest.raises(SandboxError, match=f"orders-3: {error} came otherwise"):
        episode(WHERE, expected, seen(batch(0, 3, 10)))


def test_without_a_line_there_is_no_episode() -> None:
    with pytest.raises(SandboxError, match="no broker wrote"):
        episode(WHERE, EXPECTED, seen(batch(0, 3, 10), rejections=()))
