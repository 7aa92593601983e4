"""Keys and values of `__consumer_offsets`: each version, other kinds, and what cannot be read."""

from __future__ import annotations

import struct

import pytest

from collectors.offset_record import OffsetCommit, commit_name, decode_commit, other_type
from collectors.transaction_record import RecordUnreadableError
from rules.facts.identity import TopicPartition

KEY = b"\0\1" + b"\0\7billing" + b"\0\6orders" + b"\0\0\0\3"
NAME = TopicPartition("orders", 3)
OFFSET = struct.pack(">q", 42)
TIME = struct.pack(">q", 1_700_000_000_000)
PLAIN = b"\0\2hi"


@pytest.mark.parametrize(
    ("value", "leader_epoch"),
    [
        pytest.param(b"\0\0" + OFFSET + PLAIN + TIME, None, id="v0"),
        pytest.param(b"\0\1" + OFFSET + PLAIN + TIME + TIME, None, id="v1 with its expiry"),
        pytest.param(b"\0\2" + OFFSET + PLAIN + TIME, None, id="v2"),
        pytest.param(b"\0\3" + OFFSET + b"\0\0\0\6" + PLAIN + TIME, 6, id="v3"),
        pytest.param(b"\0\3" + OFFSET + b"\xff" * 4 + PLAIN + TIME, None, id="v3 without an epoch"),
        pytest.param(b"\0\4" + OFFSET + b"\0\0\0\6" + b"\3hi" + TIME + b"\0", 6, id="v4, flexible"),
    ],
)  # fmt: skip
def test_each_version_of_a_commit(value: bytes, leader_epoch: int | None) -> None:
    assert decode_commit(KEY, value) == OffsetCommit(
        group="billing", name=NAME, committed_offset=42, leader_epoch=leader_epoch, metadata="hi", committed_ms=1_700_000_000_000,
    )  # fmt: skip


def test_a_tombstone_deletes_a_commit() -> None:
    assert decode_commit(KEY, None) == OffsetCommit(
        group="billing", name=NAME, committed_offset=None
    )


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        pytest.param(b"\0\2\0\1a", "GroupMetadata", id="a classic group"),
        pytest.param(b"\0\3\0\1a", "ConsumerGroupMetadata", id="a group of KIP-848"),
        pytest.param(b"\0\x63\0\1a", None, id="a kind of a newer broker"),
        pytest.param(b"\0", None, id="too short"),
        pytest.param(None, None, id="no key"),
    ],
)
def test_other_kinds_have_their_names_alone(key: bytes | None, kind: str | None) -> None:
    assert decode_commit(key, b"\0\0") is None
    assert other_type(key) == kind


@pytest.mark.parametrize("key", [KEY[:-1], b"\0\1\xff\xff", b"\0\1\0\2\xff\xff\0\0\0\0\0\0"])
def test_a_damaged_key_names_nothing(key: bytes) -> None:
    assert commit_name(key) is None


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"\0\3" + OFFSET, id="ends early"),
        pytest.param(b"\0\3" + OFFSET + b"\0\0\0\6\0\2\xff\xff" + TIME, id="no text"),
        pytest.param(b"\0\x09" + OFFSET + bytes(40), id="a newer version"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_damaged_value_is_an_error_of_its_group(value: bytes) -> None:
    with pytest.raises(RecordUnreadableError):
        decode_commit(KEY, value)
