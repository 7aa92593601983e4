"""Batches of producers: where they are searched for, how much of a log, and what is left open."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from collectors import batch_scans
from collectors import batches as batches_collector
from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.producers import Producers, ProducerState
from rules.question import BatchRequest
from tests.factories import NOON, offsets
from tests.unit.collectors.batch_logs import (
    READ_DENIED,
    Logs,
    data,
    wanted,
)
from tests.unit.collectors.wire.records import CONTROL, TRANSACTIONAL, Batch


def filler(start: int, end: int, *, size: int = 10) -> list[Batch]:
    """Return batches of nobody that fill offsets."""
    return [
        Batch(base_offset=at, last_delta=min(size, end - at) - 1) for at in range(start, end, size)
    ]


def test_nothing_is_fetched_unasked() -> None:
    logs = Logs({0: filler(0, 100)})
    assert (logs.observe(), logs.requests, logs.gaps) == ((), {}, [])


def test_the_last_accepted_batch_just_before_the_rejected_one_is_one_request() -> None:
    log = [*filler(0, 90), data(90, sequence=3, count=3, leader_epoch=4), *filler(93, 100)]
    logs = Logs({0: log})
    [found] = logs.observe(wanted(at=100, last=5))
    assert found == BatchesOf(
        name=TopicPartition("orders", 0),
        producer_id=7,
        batches=(
            BatchSeen(
                base_offset=90,
                last_offset=92,
                leader_epoch=4,
                producer_epoch=0,
                base_sequence=3,
                last_sequence=5,
                record_count=3,
                is_transactional=False,
            ),
        ),
        scanned_from=0,
        scanned_to=100,
        largest_batch=10,
    )
    assert (logs.fetched, logs.gaps) == ([(0, 0)], [])


def test_what_healed_it_is_found_behind_the_rejected_batch() -> None:
    log = [*filler(0, 500), data(500, sequence=0), data(501, sequence=1), *filler(502, 520)]
    [found] = Logs({0: log}).observe(wanted(at=501, last=0))
    assert [(one.base_offset, one.base_sequence) for one in found.batches] == [(500, 0), (501, 1)]
    assert (found.scanned_from, found.scanned_to) == (400, 520)


def test_a_batch_that_is_further_back_is_found_by_going_back() -> None:
    log = [*filler(0, 7000), data(7000, sequence=2), *filler(7001, 8001)]
    logs = Logs({0: log})
    [found] = logs.observe(wanted(at=8001, last=2))
    assert [one.base_offset for one in found.batches] == [7000]
    assert logs.fetched == [(0, 7901), (0, 6001)]
    assert (found.scanned_from, found.scanned_to) == (6000, 8001), "the batch that holds 6001"


@pytest.mark.parametrize("is_told_by_leader", [False, True])
def test_a_batch_that_is_far_back_is_found_by_the_time_that_its_leader_remembers(
    *, is_told_by_leader: bool
) -> None:
    log = [*filler(0, 40), data(40, sequence=2), *filler(41, 9001)]
    logs = Logs({0: log}, times={NOON: 38})
    state = ProducerState(producer_epoch=0, last_sequence=2, last_record_at=NOON)
    told = Producers(observed=np.ones(3, np.bool_), open=(), states={0: {7: state}})
    asked = wanted(at=9001, last=2, last_record_at=None if is_told_by_leader else NOON)
    [found] = logs.observe(asked, producers=told if is_told_by_leader else None)
    assert [one.base_offset for one in found.batches] == [40]
    assert logs.fetched[-1] == (0, 38)
    assert (found.scanned_from, found.scanned_to) == (7001, 9001), "what lies between was not seen"


def test_a_leader_that_remembers_a_later_sequence_tells_nothing_of_the_time() -> None:
    logs = Logs({0: filler(0, 9001)}, times={NOON: 38})
    state = ProducerState(producer_epoch=0, last_sequence=3, last_record_at=NOON)
    told = Producers(observed=np.ones(3, np.bool_), open=(), states={0: {7: state}})
    logs.observe(wanted(at=9001, last=2), producers=told)
    assert "ListOffsets" not in logs.requests


def test_sequences_wrap_around() -> None:
    log = [data(0, sequence=2**31 - 2, count=4), *filler(4, 10)]
    [found] = Logs({0: log}).observe(wanted(at=10, last=1))
    assert (found.batches[0].base_sequence, found.batches[0].last_sequence) == (2**31 - 2, 1)


def test_a_batch_with_holes_after_compaction_keeps_its_sequences() -> None:
    holed = replace(data(0, sequence=4, count=6), count=2)
    [found] = Logs({0: [holed, *filler(6, 10)]}).observe(wanted(at=10, last=9))
    assert (found.batches[0].last_sequence, found.batches[0].record_count) == (9, 2)


def test_markers_are_told_apart_and_are_no_batches() -> None:
    marker = Batch(
        base_offset=11, attributes=CONTROL | TRANSACTIONAL, producer_id=7, producer_epoch=3
    )
    log = [*filler(0, 10), data(10, sequence=0, epoch=2, attributes=TRANSACTIONAL), marker]
    [found] = Logs({0: log}).observe(wanted(at=11, last=0))
    assert [one.base_offset for one in found.batches] == [10]
    assert found.markers == (MarkerSeen(offset=11, leader_epoch=3, producer_epoch=3),)
    assert found.largest_batch == 10, "a marker is no batch of anybody"


def since(time: datetime = NOON, **more: Any) -> BatchRequest:
    return wanted(at=None, last=None, last_record_at=time, **more)


def test_all_from_a_time_on_is_scanned_through_up_to_the_end() -> None:
    log = [data(0), *filler(1, 5000), data(5000, sequence=1), *filler(5001, 6000)]
    logs = Logs({0: log}, times={NOON: 4000})
    [found] = logs.observe(since())
    assert [one.base_offset for one in found.batches] == [5000]
    assert (found.since, found.scanned_to) == (NOON, 6000)
    assert found.scanned_from <= 4000
    assert logs.requests == {"ListOffsets": 1, "Fetch": 1}


def test_nothing_is_fetched_where_no_record_is_so_late() -> None:
    logs = Logs({0: filler(0, 100)})
    [found] = logs.observe(since())
    assert (found.batches, found.scanned_from, found.scanned_to) == ((), 100, 100)
    assert found.since == NOON
    assert logs.requests == {"ListOffsets": 1}


def test_a_leader_that_does_not_tell_where_a_time_is_leaves_a_gap() -> None:
    logs = Logs({0: filler(0, 100)}, time_error=READ_DENIED)
    assert logs.observe(since()) == ()
    assert [(gap.scope, gap.cause) for gap in logs.gaps] == [
        (GapScope.BATCHES, GapCause.NOT_AUTHORIZED)
    ]


def test_a_long_log_is_scanned_through_over_some_rounds() -> None:
    log = [data(at, sequence=at) for at in range(60)]
    logs = Logs({0: log}, answer_bytes=10 * len(log[0].encode()))
    [found] = logs.observe(wanted(at=0, last=None))
    assert (len(logs.fetched), found.scanned_to) == (batches_collector.MAX_SCANS, 40)
    assert logs.observe(wanted(at=0, last=None))[0].scanned_to == 60
    [found] = logs.observe(wanted(at=0, last=None))
    assert [one.base_sequence for one in found.batches] == list(range(60))
    assert logs.requests == {}, "nothing new is there"


def test_what_was_appended_meanwhile_is_scanned_at_in_the_next_round() -> None:
    logs = Logs({0: filler(0, 100)})
    assert logs.observe(wanted(at=100, last=None))[0].scanned_to == 100
    logs.logs = {0: [*filler(0, 100), data(100)]}
    [found] = logs.observe(wanted(at=100, last=None))
    assert (logs.fetched, found.scanned_to, len(found.batches)) == ([(0, 100)], 101, 1)


def test_another_leader_epoch_begins_anew() -> None:
    logs = Logs({0: [*filler(0, 90), data(90)]})
    assert len(logs.observe(wanted(at=91, last=None))[0].batches) == 1
    logs.logs = {0: filler(0, 90)}
    seen = offsets(3, high_watermark=[90, 0, 0], leader_epoch=[6, 6, 6])
    [found] = logs.observe(wanted(at=91, last=None), ends=seen)
    assert (found.batches, found.scanned_to) == ((), 90)


def test_another_producer_begins_anew() -> None:
    logs = Logs({0: [data(0), data(1, of=8)]})
    logs.observe(wanted(at=2, last=None))
    found = logs.observe(wanted(at=2, last=None), wanted(of=8, at=2, last=None))
    assert [(one.producer_id, len(one.batches)) for one in found] == [(7, 1), (8, 1)]


def test_a_later_rejection_far_away_is_not_reached_through_all_that_lies_between() -> None:
    logs = Logs({0: filler(0, 100_000)}, answer_bytes=1000)
    logs.observe(wanted(at=500, last=0))
    [found] = logs.observe(wanted(at=90_000, last=0))
    assert found.scanned_from > 80_000


def test_too_many_batches_end_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_scans, "MAX_KEPT", 20)
    log = [data(at, sequence=at) for at in range(60)]
    logs = Logs({0: log}, answer_bytes=10 * len(log[0].encode()))
    for _ in range(2):
        [found] = logs.observe(wanted(at=0, last=None))
        assert (len(found.batches), found.scanned_to) == (20, 20)


def test_a_batch_that_is_too_large_for_an_answer_is_asked_for_by_itself() -> None:
    large = Batch(base_offset=0, payload=b"x" * 300_000, producer_id=7, base_sequence=0)
    logs = Logs({0: [large], 1: [large]})
    found = logs.observe(wanted(at=1, last=None), wanted(partition=1, at=1, last=None))
    assert [len(one.batches) for one in found] == [1, 1]


def test_a_log_that_tells_nothing_is_not_asked_without_end() -> None:
    logs = Logs({0: [Batch(base_offset=0, last_delta=9, magic=1)]})
    [found] = logs.observe(wanted(at=10, last=0))
    assert (found.scanned_from, found.scanned_to, logs.requests["Fetch"]) == (0, 0, 2)


def test_partitions_of_a_leader_are_one_request_and_have_their_turn_when_they_are_too_many() -> (
    None
):
    rows = batches_collector.MAX_PARTITIONS + 1
    logs = Logs({row: [data(0)] for row in range(rows)})
    asked = [wanted(partition=row, at=1, last=None) for row in range(rows)]
    first = {one.name.partition for one in logs.observe(*asked)}
    assert (len(first), logs.requests["Fetch"]) == (rows - 1, 1)
    [gap] = logs.gaps
    assert (gap.scope, gap.cause, gap.topic) == (GapScope.BATCHES, GapCause.LIMIT, "orders")
    second = {one.name.partition for one in logs.observe(*asked)}
    assert first | second == set(range(rows))
