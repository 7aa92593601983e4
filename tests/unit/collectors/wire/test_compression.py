"""Records of compressed batches: as clients write them, damaged, and longer than any batch."""

from __future__ import annotations

import gzip
import struct

import pyarrow as pa
import pytest

from collectors.wire import compression
from collectors.wire.compression import NotDecompressedError, decompress
from collectors.wire.records import read_batch
from rules.facts.log_files import LOG_APPEND_TIME_BIT, Codec
from service.sandbox.workloads.record_batch import varint
from tests.unit.collectors.wire.records import Batch

CONTENT = b"an order, an order, and another order " * 50


def packed(codec: Codec, content: bytes = CONTENT) -> bytes:
    if codec is Codec.GZIP:
        return gzip.compress(content)
    whole: bytes = pa.compress(content, codec=str(codec), asbytes=True)
    return whole


def as_snappy_java(content: bytes) -> bytes:
    """Return blocks behind the head that snappy-java writes, as the Java client does."""
    halves = [packed(Codec.SNAPPY, half) for half in (content[:700], content[700:])]
    blocks = b"".join(struct.pack(">i", len(half)) + half for half in halves)
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + blocks


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_each_codec_is_read_whole_or_is_an_error(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = packed(codec)
    assert decompress(codec, content) == CONTENT
    with pytest.raises(NotDecompressedError):
        decompress(codec, b"\0\1\2no frame of any codec")
    monkeypatch.setattr(compression, "MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(NotDecompressedError, match="more than"):
        decompress(codec, content)


def test_snappy_is_read_in_the_frames_of_the_java_client() -> None:
    assert decompress(Codec.SNAPPY, as_snappy_java(CONTENT)) == CONTENT
    with pytest.raises(NotDecompressedError, match="ends early"):
        decompress(Codec.SNAPPY, as_snappy_java(CONTENT)[:-1])


def test_a_codec_of_a_newer_broker_is_named() -> None:
    with pytest.raises(NotDecompressedError, match="is not known"):
        decompress(Codec.UNKNOWN, CONTENT)


def record(delta: int, key: bytes | None, value: bytes) -> bytes:
    inner = b"\0" + varint(7) + varint(delta)
    inner += varint(-1) if key is None else varint(len(key)) + key
    inner += varint(len(value)) + value + varint(0)
    return varint(len(inner)) + inner


@pytest.mark.parametrize(
    ("codec", "number"), [(Codec.NONE, 0), (Codec.GZIP, 1), (Codec.ZSTD, 4)]
)  # fmt: skip
def test_a_whole_batch_is_read_with_its_times(codec: Codec, number: int) -> None:
    records = record(0, None, b"a") + record(1, b"k", b"\xff\0")
    payload = records if codec is Codec.NONE else packed(codec, records)
    batch = Batch(base_offset=40, last_delta=1, attributes=number, payload=payload)
    read = read_batch(batch.encode())
    assert not isinstance(read, str)
    assert [(each.offset, each.key, each.value) for each in read] == [
        (40, None, b"a"), (41, b"k", b"\xff\0"),
    ]  # fmt: skip
    assert {each.timestamp_ms for each in read} == {batch.first_ms + 7}
    by_leader = Batch(last_delta=1, attributes=number | LOG_APPEND_TIME_BIT, payload=payload)
    appended = read_batch(by_leader.encode())
    assert {each.timestamp_ms for each in appended if not isinstance(each, str)} == {
        by_leader.first_ms + 500
    }


def test_what_is_damaged_is_named() -> None:
    cut = Batch(last_delta=1, payload=record(0, None, b"a"))
    assert read_batch(cut.encode()) == "has a record that ends early"
    damaged = Batch(attributes=4, payload=b"no frame")
    assert str(read_batch(damaged.encode())).startswith("cannot be decompressed (zstd)")
