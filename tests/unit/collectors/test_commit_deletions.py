"""Commits that were deleted and made anew, as the coordinators' log tells."""

from __future__ import annotations

import struct

import pytest

from collectors.commit_deletions import find_recreated
from collectors.wire.records import Record
from rules.facts.identity import TopicPartition


def commit_key(group: str = "billing", topic: str = "orders", partition: int = 0) -> bytes:
    """Return an OffsetCommitKey of version 1."""
    texts = b"".join(struct.pack(">h", len(one)) + one.encode() for one in (group, topic))
    return struct.pack(">h", 1) + texts + struct.pack(">i", partition)


def value(offset: int) -> bytes:
    """Return the beginning of an OffsetCommitValue of version 3."""
    return struct.pack(">hqi", 3, offset, -1) + b"\0\0"


def log(*offsets: int | None, key: bytes | None = None) -> list[Record]:
    """Return the records of one commit; None is a tombstone."""
    name = commit_key() if key is None else key
    return [
        Record(number, name, None if offset is None else value(offset))
        for number, offset in enumerate(offsets)
    ]


ONE = ("billing", TopicPartition("orders", 0))


@pytest.mark.parametrize(
    ("offsets", "is_anew"),
    [
        pytest.param((50, None, 20), True, id="deleted-and-made-anew"),
        pytest.param((None, 20, 30), True, id="and-gone-forward"),
        pytest.param((50, 20), False, id="reset"),
        pytest.param((50, None, 40, 20), False, id="reset-after-it-was-made-anew"),
        pytest.param((50, None, 20, None, 5), True, id="twice"),
        pytest.param((50, 20, None), False, id="not-made-anew"),
        pytest.param((None,), False, id="deleted"),
        pytest.param((), False, id="nothing-written"),
    ],
)
def test_what_the_log_says_of_one_commit(offsets: tuple[int | None, ...], *, is_anew: bool) -> None:
    assert find_recreated(log(*offsets)) == ({ONE} if is_anew else set())


def test_each_commit_is_told_by_itself() -> None:
    other = commit_key(group="audit", partition=3)
    records = [*log(50, None, 20), *log(50, 20, key=other)]
    assert find_recreated(records) == {ONE}


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(struct.pack(">hh", 2, 7) + b"billing", id="of-a-group"),
        pytest.param(commit_key()[:9], id="cut-short"),
        pytest.param(b"", id="empty"),
        pytest.param(struct.pack(">hh", 1, 2) + b"\xff\xfe", id="no-text"),
    ],
)
def test_other_keys_are_left_out(key: bytes) -> None:
    assert find_recreated(log(50, None, 20, key=key)) == set()


def test_a_record_without_a_key_is_left_out() -> None:
    assert find_recreated([Record(0, None, None), Record(1, None, value(5))]) == set()


def test_a_value_that_is_cut_short_is_left_out() -> None:
    assert find_recreated([*log(50, None), Record(2, commit_key(), b"\0\3")]) == set()
