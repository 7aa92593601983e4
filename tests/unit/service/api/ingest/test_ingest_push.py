"""Loki's push in Protocol Buffers, packed by Snappy: what Promtail and Grafana Alloy send."""

from __future__ import annotations

import base64
import random
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.facts.identity import BrokerId
from service.api.core.problems import ProblemError
from service.api.ingest.body import MAX_LINES, PUSH, Sent, delivery_of
from service.api.ingest.broker_body import broker_reading
from service.api.ingest.push import push_of
from service.api.ingest.query import IngestQuery
from service.api.ingest.unpacking import MAX_UNPACKED, SnappyError, unsnap
from service.observe.log_submissions import Stream

# Made by other implementations of both formats: two streams, the first with the two lines of a
# record, labels with escapes, times, structured metadata, and the fields `hash` and `format`.
REAL: Final = base64.b64decode(
    "rwTwRgqPBApme2Jyb2tlcl9pZD0iMSIsIGZpbGVuYW1lPSIvdmFyL2xvZy9rYWZrYS9zZXJ2ZXIubG9nIiwgaG9zdD"
    "0ia2Fma2EtATYIam9iDQ/wpCIsIG9kZD0iYSBcImJcIiBcXCBjIn0SrwEKCwj4jYbYBhDAy+hLEo8BWzIwMjYtMTEt"
    "MjEgMTE6NTY6NDAsMTU5XSBFUlJPUiBbUmVwbGljYU1hbmFnZXIgYnJva2VyPTFdIEVycm9yIHByb2Nlc3NpbmcgYX"
    "BwZW5kIG9wZXJhdGlvbiBvbiBwYXJ0aXRpb24gb3JkZXJzLTAgKGthZmthLnNlcgHJNl8ASCkaDgoFbGV2ZWwSBWVy"
    "cm9yEucZsgDBAbIwxwFvcmcuYXBhY2hlLgX6HC5jb21tb24uBTCQcy5PdXRPZk9yZGVyU2VxdWVuY2VFeGNlcHRpb2"
    "46IE91dCBvZgmMBCBzDSAgIG51bWJlciBmCc8sZHVjZXIgMjAwMSBhAS4gZnNldCAzIGluSs0ARDogNiAoaW5jb21p"
    "bmcgc2VxLg1NQCksIDIgKGN1cnJlbnQgZW5kAR0FjhEhPuoAPBjSlfzYzrGqqqsBChUKDXslzEhvdGhlciJ9EgQSAs"
    "OkEgRsb2tp"
)


def varint(number: int) -> bytes:
    head = b"" if number < 0x80 else varint(number >> 7)
    return bytes([number & 0x7F | (0x80 if head else 0)]) + head


def held(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def push(*streams: tuple[str, list[str]]) -> bytes:
    def stream(labels: str, lines: list[str]) -> bytes:
        entries = (held(2, held(2, line.encode())) for line in lines)
        return held(1, labels.encode()) + b"".join(entries)

    return b"".join(held(1, stream(labels, lines)) for labels, lines in streams)


def literal(data: bytes) -> bytes:
    """Pack without any copy."""
    parts = (data[at : at + 60] for at in range(0, len(data), 60))
    return varint(len(data)) + b"".join(bytes([len(one) - 1 << 2]) + one for one in parts)


def lines(body: bytes, *, encoding: str = "") -> dict[Stream, list[bytes]]:
    sent = Sent(
        body=body,
        content_type=PUSH,
        content_encoding=encoding,
        reading=broker_reading(IngestQuery()),
        key=None,
    )
    return {stream: list(held) for stream, held in delivery_of(sent).lines.items()}


@pytest.mark.parametrize("encoding", ["", "snappy"])
def test_a_push_is_its_lines_stream_by_stream(encoding: str) -> None:
    found = lines(REAL, encoding=encoding)
    stream = Stream("kafka-1", BrokerId(1), "/var/log/kafka/server.log")
    assert list(found) == [stream, Stream("http")]
    first, second = found[stream]
    assert first.startswith(b"[2026-11-21 11:56:40,159] ERROR [ReplicaManager broker=1]")
    assert second.endswith(b" 2 (current end sequence number)")
    assert found[Stream("http")] == ["ä".encode()]


def test_an_empty_push_holds_nothing() -> None:
    assert lines(b"") == lines(literal(b"")) == lines(literal(push())) == {}
    assert lines(literal(push(("{}", [])))) == {}


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"\xff" * 10, 400, "the body is no push of Loki: its Snappy block has no length"),
        (REAL[:-1], 400, "the body is no push of Loki: its Snappy block is damaged"),
        (literal(b"\x0a\xff"), 400, "the body is no push of Loki: "),
        (literal(push(('{broker_id="x"}', ["a"]))), 400, "broker_id is not a valid broker id"),
        (varint(MAX_UNPACKED + 1) + b"\0", 413, "when it is unpacked"),
        (literal(push(("{}", ["\n" * (MAX_LINES + 2)]))), 413, f"may have up to {MAX_LINES} lines"),
        (random.Random(1).randbytes(1000), 400, "the body is no push of Loki: "),
    ],
)
def test_what_is_no_push_is_told(body: bytes, status: int, told: str) -> None:
    with pytest.raises(ProblemError) as rejected:
        lines(body)
    assert (rejected.value.status, told in rejected.value.detail) == (status, True)


def test_a_push_that_is_packed_otherwise_is_rejected() -> None:
    with pytest.raises(ProblemError, match="compressed with Snappy") as rejected:
        lines(REAL, encoding="gzip")
    assert rejected.value.status == 415


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (b"\x00", b""),
        (b"\x01\x00a", b"a"),
        (b"\x0b\x00a\x15\x01\x00b", b"a" * 10 + b"b"),
        (b"\x06\x04ab\x0e\x02\x00", b"ababab"),
        (b"\x05\x04ab\x0b\x02\x00\x00\x00", b"ababa"),
        (b"\x46\xf0\x45" + bytes(70), bytes(70)),
        (b"\x46\xf4\x45\x00" + bytes(70), bytes(70)),
    ],
)
def test_literals_and_copies_are_unpacked(block: bytes, data: bytes) -> None:
    assert unsnap(block, 100) == data


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x80",
        b"\x80\x80\x80\x80\x80\x00",
        b"\x01",
        b"\x02\x00a",
        b"\x01\x04ab",
        b"\x05\x10ab",
        b"\x05\xf0",
        b"\x05\xfc\x01\x00",
        b"\x05\x00a\x01",
        b"\x05\x00a\x01\x00",
        b"\x05\x00a\x01\x02",
        b"\x05\x00a\x0e\x01",
        b"\x05\x00a\x0f\x01\x00\x00",
        b"\x02\x00a\xfe\x01\x00",
    ],
)
def test_a_damaged_block_is_told(block: bytes) -> None:
    with pytest.raises(SnappyError):
        unsnap(block, 1000)


def test_a_block_beyond_the_limit_is_not_begun() -> None:
    assert unsnap(literal(b"abcd"), 4) == b"abcd"
    with pytest.raises(OverflowError):
        unsnap(literal(b"abcd"), 3)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_block_or_are_told(block: bytes) -> None:
    with suppress(SnappyError, OverflowError):
        assert len(unsnap(block, 10_000)) <= 10_000


@given(st.binary(max_size=1000))
def test_what_was_packed_is_unpacked(data: bytes) -> None:
    assert unsnap(literal(data), 1000) == data


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("{}", {}),
        ("", {}),
        ('{a="1"}', {"a": "1"}),
        ('{a="1", b_2="x y"}', {"a": "1", "b_2": "x y"}),
        (r'{a="\"", b="\\", c="\n"}', {"a": '"', "b": "\\", "c": "\n"}),
        (r'{a="\xff"}', {"a": r"\xff"}),
        ('{a="ä", b=""}', {"a": "ä", "b": ""}),
        ('{a=1, b="2"', {"b": "2"}),
        ("a" * 10_000 + '="1"', {}),
    ],
)
def test_labels_are_read_as_prometheus_writes_them(labels: str, expected: dict[str, str]) -> None:
    ((found, _),) = push_of(push((labels, ["line"])))
    assert found == expected


def test_fields_that_are_not_needed_are_skipped() -> None:
    skipped = varint(7 << 3) + varint(2**63) + varint(8 << 3 | 1) + bytes(8)
    skipped += varint(9 << 3 | 5) + bytes(4) + held(99, b"more")
    stream = skipped + held(1, b'{a="1"}') + skipped + held(2, skipped + held(2, b"line") + skipped)
    assert list(push_of(skipped + held(1, stream))) == [({"a": "1"}, b"line")]


def test_an_entry_without_a_line_is_an_empty_line() -> None:
    assert list(push_of(held(1, held(2, b"")))) == [({}, b"")]


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a",
        b"\x0a\x05ab",
        b"\x0b",
        b"\x0f\x00",
        b"\x09\x00",
        b"\x0d\x00",
        b"\x08",
        b"\xff" * 11,
        b"\x0a" + b"\xff" * 9 + b"\x01",
        held(1, b"\x12\x7f"),
        held(1, held(2, b"\x12\x7f")),
    ],
)
def test_what_is_no_message_is_told(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"a (field|number)"):
        list(push_of(message))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_are_told(message: bytes) -> None:
    with suppress(ValueError):
        assert all(isinstance(line, bytes) for _, line in push_of(message))
