"""Laws of reading records: what was rendered is read back, and nothing else raises."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from collectors.transaction_endings import Endings
from collectors.transaction_record import (
    STATES,
    RecordUnreadableError,
    TransactionRecord,
    TransactionValue,
    decode,
)
from collectors.wire.records import Record, read_records
from rules.facts.times import LAST_MS
from tests.unit.collectors.transaction_records import (
    render_batch,
    render_key,
    render_log,
    render_value,
)

INT64 = st.integers(0, 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(0, 2**15 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
TIMES = st.integers(0, LAST_MS)
PARTITIONS = st.lists(st.tuples(NAMES, st.lists(INT32, max_size=200).map(tuple)), max_size=3).map(
    tuple
)


@st.composite
def values(draw: st.DrawFn) -> TransactionValue:
    """Draw a value of either version."""
    version = draw(st.integers(0, 1))
    absent = st.none()
    return TransactionValue(
        version,
        draw(st.integers(-1, 2**63 - 1)),
        draw(st.integers(-1, 2**15 - 1)),
        draw(INT32),
        draw(st.sampled_from(STATES)),
        draw(absent | PARTITIONS),
        draw(TIMES),
        draw(absent | TIMES),
        *(() if version == 0 else draw(TAGGED)),
    )


TAGGED = st.tuples(st.none() | INT64, st.none() | INT64, INT16, st.none() | INT16)
RECORDS = st.builds(TransactionRecord, NAMES, st.none() | values())
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.binary(max_size=5), BYTES), max_size=3).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Record, ...]:
    """Draw the records of one batch; compaction may have left holes."""
    offsets = draw(st.lists(st.integers(0, 2**20), min_size=1, max_size=5, unique=True).map(sorted))
    times = draw(st.none() | st.integers(0, 2**40))
    return tuple(
        Record(
            offset,
            draw(BYTES),
            draw(BYTES),
            draw(HEADERS),
            None if times is None else times + draw(st.integers(0, 2**20)),
        )
        for offset in offsets
    )


@given(RECORDS)
def test_what_was_rendered_is_decoded(record: TransactionRecord) -> None:
    content = None if record.value is None else render_value(record.value)
    assert decode(render_key(record.transactional_id), content) == record


@given(values().map(render_value), st.data())
def test_a_value_that_ends_early_is_rejected(content: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(content) - 1))
    with contextlib.suppress(RecordUnreadableError):
        decode(render_key("payments"), content[:cut])
        raise AssertionError(cut)


@given(BYTES, BYTES)
def test_bytes_that_are_no_record_raise_nothing_else(
    key: bytes | None, value: bytes | None
) -> None:
    with contextlib.suppress(RecordUnreadableError):
        decode(key, value)


def damaged(render: Callable[[TransactionValue], bytes]) -> st.SearchStrategy[bytes]:
    """Draw rendered values with one byte that is another."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> bytes:
        content = bytearray(render(draw(values())))
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
        return bytes(content)

    return draw_one()


@given(st.lists(damaged(render_value), max_size=4))
def test_a_damaged_value_raises_nothing_else_wherever_it_is_taken(contents: list[bytes]) -> None:
    endings = Endings()
    for content in contents:
        with contextlib.suppress(RecordUnreadableError):
            record = decode(render_key("payments"), content)
            if record is not None:
                endings.take(record)


@given(st.lists(batches(), max_size=3))
def test_what_was_rendered_into_batches_is_read(written: list[tuple[Record, ...]]) -> None:
    body, base, expected = b"", 0, []
    for records in written:
        body += render_batch(records, base=base)
        expected += [replace(record, offset=base + record.offset) for record in records]
        base += records[-1].offset + 1
    found = read_records(body)
    assert (list(found.records), found.unreadable) == (expected, ())
    assert found.next_offset == (base if written else None)


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_a_cut_answer_gives_its_whole_batches(
    records: list[TransactionRecord], data: st.DataObject
) -> None:
    body = render_log(records)
    found = read_records(body[: data.draw(st.integers(0, len(body)))])
    taken = [decode(record.key, record.value) for record in found.records]
    assert taken == records[: len(taken)]
    assert found.next_offset == (len(taken) or None)


@given(batches(), st.data())
def test_damaged_batches_raise_nothing(records: tuple[Record, ...], data: st.DataObject) -> None:
    body = bytearray(render_batch(records))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_records(bytes(body))


@given(st.binary(max_size=400))
def test_bytes_that_are_no_batch_raise_nothing(body: bytes) -> None:
    read_records(body)
