"""Records of uncompressed v2 batches; what is otherwise is an error value."""

from __future__ import annotations

import pytest

from collectors.wire.records import Record, UnreadableBatch, read_records
from tests.unit.collectors.transaction_records import render_batch, render_record, varint
from tests.unit.collectors.wire.records import CONTROL, Batch

PLAIN = (Record(0, b"key", b"value"), Record(1, b"", b""))


def test_offsets_count_from_the_base_of_their_batch() -> None:
    found = read_records(render_batch(PLAIN, base=40) + render_batch(PLAIN, base=42))
    assert [record.offset for record in found.records] == [40, 41, 42, 43]
    assert (found.next_offset, found.leader_epoch, found.unreadable) == (44, 3, ())


def test_null_is_not_empty() -> None:
    records = (Record(0, None, b""), Record(1, b"", None))
    assert read_records(render_batch(records)).records == records


def test_headers_and_long_fields_are_read() -> None:
    long = b"x" * 20_000
    record = Record(0, long, long, ((b"trace", b"1"), (b"none", None)))
    assert read_records(render_batch([record])).records == (record,)


def test_timestamps_count_from_the_first_of_their_batch() -> None:
    records = (Record(0, b"", b"", (), 1_000), Record(1, b"", b"", (), 1_250))
    earlier = Record(2, b"", b"", (), 990)
    assert read_records(render_batch([*records, earlier])).records == (*records, earlier)


def test_a_batch_without_timestamps_has_none() -> None:
    assert [record.timestamp_ms for record in read_records(render_batch(PLAIN)).records] == [
        None
    ] * 2


def test_a_batch_cut_short_at_the_end_is_left_out() -> None:
    whole = render_batch(PLAIN)
    found = read_records(whole + render_batch(PLAIN, base=2)[:-1])
    assert (found.records, found.next_offset) == (PLAIN, 2)


def test_nothing_complete_is_nothing_read() -> None:
    found = read_records(render_batch(PLAIN)[:60])
    assert (found.records, found.next_offset, found.leader_epoch) == ((), None, None)


def test_a_control_batch_has_an_offset_and_no_records() -> None:
    found = read_records(render_batch([Record(0, b"\0\0\0\1", b"x")], attributes=CONTROL))
    assert (found.records, found.unreadable, found.next_offset) == ((), (), 1)


def test_records_before_the_fetched_offset_are_left_out() -> None:
    found = read_records(render_batch(PLAIN, base=40))
    assert [record.offset for record in found.since(41).records] == [41]
    assert found.since(40) is found
    assert read_records(b"").since(7).records == ()


NEGATIVE = varint(6) + b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(0)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Batch(attributes=1), "is compressed"),
        (Batch(magic=1), "has format v1"),
        (Batch(payload=render_record(PLAIN[0])[:-1]), "has a record that ends early"),
        (Batch(payload=varint(-1)), "has a record that ends early"),
        (Batch(payload=varint(6) + b"\0" * 3 + varint(9) * 3), "has a field that ends early"),
        (Batch(payload=varint(7) + NEGATIVE[1:] + b"\0"), "has a record of another length"),
        (Batch(payload=b"\xff" * 20), "has a number that does not end"),
    ],
)
def test_a_batch_that_cannot_be_read_costs_nothing_of_the_others(broken: Batch, why: str) -> None:
    found = read_records(broken.encode() + render_batch(PLAIN, base=1))
    assert [record.offset for record in found.records] == [1, 2]
    [unreadable] = found.unreadable
    assert unreadable == UnreadableBatch(0, 0, unreadable.why)
    assert unreadable.why.startswith(why)


def test_a_batch_that_holds_fewer_records_than_it_says_is_unreadable() -> None:
    found = read_records(Batch(last_delta=1, payload=render_record(PLAIN[0])).encode())
    [unreadable] = found.unreadable
    assert (found.records, unreadable.last_offset, found.next_offset) == ((), 1, 2)
