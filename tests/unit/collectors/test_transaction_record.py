"""Keys and values of `__transaction_state`, also as hexadecimal from a real broker."""

from __future__ import annotations

import struct

import pytest

from collectors.transaction_record import (
    STATES,
    RecordUnreadableError,
    TransactionRecord,
    TransactionValue,
    decode,
    decode_name,
    is_prepare_commit,
)
from rules.facts.times import LAST_MS
from rules.facts.transactions import TransactionState
from tests.unit.collectors.transaction_records import NOON_MS, render_key, render_value, value

REAL = [  # of brokers of 4.1.1 with transactions v2
    (
        "00000007722d6f776e6572",
        (
            "000100000000000003e800000000ea600102027403000000000000000200000001a1ffd11702"
            "000001a1ffd1170200"
        ),
        TransactionRecord(
            "r-owner",
            TransactionValue(
                version=1,
                producer_id=1000,
                producer_epoch=0,
                timeout_ms=60_000,
                state=TransactionState.ONGOING,
                partitions=(("t", (0, 2)),),
                last_update_ms=1795293255426,
                start_ms=1795293255426,
            ),
        ),
    ),
    (
        "000000086a2d7365636f6e64",
        (
            "000100000000000007d100010000ea6003020274020000000000000001a1ffd12ef6"
            "000001a1ffd12e4a0102020002"
        ),
        TransactionRecord(
            "j-second",
            TransactionValue(
                version=1,
                producer_id=2001,
                producer_epoch=1,
                timeout_ms=60_000,
                state=TransactionState.PREPARE_ABORT,
                partitions=(("t", (0,)),),
                last_update_ms=1795293261558,
                start_ms=1795293261386,
                client_transaction_version=2,
            ),
        ),
    ),
    (
        "000000086a2d66656e636564",
        "000100000000000003ec0002000075300000000001a1ffd1564affffffffffffffff0102020002",
        TransactionRecord(
            "j-fenced",
            TransactionValue(
                version=1,
                producer_id=1004,
                producer_epoch=2,
                timeout_ms=30_000,
                state=TransactionState.EMPTY,
                partitions=None,
                last_update_ms=1795293271626,
                start_ms=None,
                client_transaction_version=2,
            ),
        ),
    ),
]


@pytest.mark.parametrize(("key", "content", "expected"), REAL)
def test_what_real_brokers_wrote_is_read(
    key: str, content: str, expected: TransactionRecord
) -> None:
    assert decode(bytes.fromhex(key), bytes.fromhex(content)) == expected


@pytest.mark.parametrize(
    ("written_ms", "expected"),
    [(NOON_MS, NOON_MS), (None, None), (-1, None), (LAST_MS + 1, None)],
)
def test_a_record_has_the_time_at_which_it_was_written_if_it_can_be_one(
    written_ms: int | None, expected: int | None
) -> None:
    record = decode(render_key("payments"), render_value(value()), written_ms)
    assert record == TransactionRecord("payments", value(), expected)


def test_a_name_is_read_without_its_value() -> None:
    assert decode_name(render_key("payments")) == "payments"
    assert decode_name(render_key("payments", kind=9)) is None
    with pytest.raises(RecordUnreadableError):
        decode_name(render_key("payments")[:5])


def test_a_value_of_version_0_has_no_tagged_fields() -> None:
    written = value(version=0, partitions=(("orders", (0, 2)), ("audit", (1,))))
    record = decode(render_key("payments"), render_value(written))
    assert record == TransactionRecord("payments", written)


def test_tagged_fields_are_read_and_unknown_ones_skipped() -> None:
    written = value(
        previous_producer_id=6,
        next_producer_id=8,
        client_transaction_version=2,
        next_producer_epoch=0,
    )
    content = render_value(written)
    known = render_value(value())
    more = known[:-1] + b"\x05" + content[len(known) :] + b"\x09\x02ab"
    assert decode(render_key("payments"), more) == TransactionRecord("payments", written)


def test_absent_partitions_are_not_an_empty_list() -> None:
    for version in (0, 1):
        for partitions in (None, ()):
            written = value(version=version, partitions=partitions)
            record = decode(render_key("payments"), render_value(written))
            assert record is not None
            assert record.value == written


def test_nothing_begun_has_no_start() -> None:
    record = decode(render_key("payments"), render_value(value(start_ms=None)))
    assert record is not None
    assert record.value is not None
    assert record.value.start_ms is None


def test_a_tombstone_has_no_value() -> None:
    assert decode(render_key("payments"), None) == TransactionRecord("payments", None)


def test_a_key_of_another_kind_is_not_ours() -> None:
    assert decode(render_key("payments", kind=1), render_value(value())) is None


def test_every_number_of_a_state_has_its_word_and_others_are_unknown() -> None:
    head = struct.pack(">hqhi", 0, 7, 3, 60_000)
    rest = struct.pack(">iqq", -1, NOON_MS, NOON_MS)
    for number, state in enumerate([*STATES, TransactionState.UNKNOWN]):
        record = decode(render_key("payments"), head + bytes([number]) + rest)
        assert record is not None
        assert record.value is not None
        assert record.value.state is state


def test_a_decision_to_commit_is_told_without_decoding() -> None:
    for version in (0, 1):
        for state in STATES:
            content = render_value(value(state, version=version))
            assert is_prepare_commit(content) is (state is TransactionState.PREPARE_COMMIT)
    decision = render_value(value(TransactionState.PREPARE_COMMIT))
    for other in (None, b"", decision[:16], b"\0\2" + decision[2:]):
        assert not is_prepare_commit(other)


@pytest.mark.parametrize(
    ("key", "content", "why"),
    [
        (None, b"", "malformed"),
        (render_key("payments")[:-1], None, "malformed"),
        (struct.pack(">hH", 0, 1) + b"\xff", None, "malformed"),
        (render_key("payments"), render_value(value())[:-1], "malformed"),
        (render_key("payments"), render_value(value(version=0))[:-1], "malformed"),
        (render_key("payments"), b"\0\2" + render_value(value())[2:], "version 2"),
        (render_key("payments"), render_value(value(start_ms=LAST_MS + 1)), "impossible time"),
        (render_key("payments"), render_value(value(last_update_ms=-1)), "impossible time"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    key: bytes | None, content: bytes | None, why: str
) -> None:
    with pytest.raises(RecordUnreadableError, match=why):
        decode(key, content)
