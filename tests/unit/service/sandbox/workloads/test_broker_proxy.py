"""How a request is spoiled on its way, and how clients are kept on it."""

from __future__ import annotations

import struct

import pytest

from service.sandbox.workloads.broker_proxy import addresses, is_produce, spoil, whole_frames
from service.sandbox.workloads.raw_producer import after


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(key: int) -> bytes:
    return frame(struct.pack(">hh", key, 12) + b"x" * 40)


def test_frames_are_taken_as_they_come_whole() -> None:
    first, second = request(0), request(3)
    buffer = bytearray(first + second[:7])
    assert list(whole_frames(buffer)) == [first]
    assert bytes(buffer) == second[:7]
    buffer += second[7:]
    assert list(whole_frames(buffer)) == [second]
    assert not buffer


@pytest.mark.parametrize("length", [-(2**31), -4, 0, 1])
def test_a_length_that_no_request_has_ends_the_connection(length: int) -> None:
    with pytest.raises(ConnectionResetError):
        list(whole_frames(bytearray(struct.pack(">i", length) + bytes(9))))


def test_only_a_request_that_writes_records_is_one() -> None:
    assert is_produce(request(0))
    assert not is_produce(request(3))


def test_spoiling_changes_one_letter_near_the_end() -> None:
    whole = frame(b"header" + b"7" * 100 + b"\0\0\0\0")
    spoiled = spoil(whole)
    changed = [at for at, (old, new) in enumerate(zip(whole, spoiled, strict=True)) if old != new]
    assert changed == [len(whole) - 20]
    assert whole[changed[0]] == ord("7")


def test_a_brokers_address_is_rewritten_wherever_it_unchanged() -> None:
    [(there, here)] = addresses({9092: 19092})
    answer = b"\x0a127.0.0.1" + struct.pack(">i", 9092) + b"\0"
    assert answer.replace(there, here) == b"\x0a127.0.0.1" + struct.pack(">i", 19092) + b"\0"


@pytest.mark.parametrize(
    ("sequence", "count", "then"), [(0, 3, 3), (2**31 - 1, 1, 0), (2**31 - 2, 3, 1)]
)
def test_sequences_begin_again_behind_the_last_one(sequence: int, count: int, then: int) -> None:
    assert after(sequence, count) == then
