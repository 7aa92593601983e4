"""Records inside v2 batches: offset, key, value, headers and timestamp.

A Fetch answer is read without its compressed batches: the internal topics that Tidemark reads have none. Those of
a file are decompressed. What is not laid out as it should be is an error value and costs nothing of the others.
Source: the v2 record batch layout (KIP-98). Checksums are not compared: TCP has its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from collectors.wire.batches import HEADER, LENGTH_PREFIX, V2_MAGIC
from collectors.wire.compression import NotDecompressedError, decompress
from rules.facts.log_files import CODEC_BITS, CONTROL_BIT, LOG_APPEND_TIME_BIT, codec_of

_LAST_VARINT_SHIFT: Final = 63
_ATTRIBUTES: Final = 5  # its place among the fields of a header
_FIRST_TIMESTAMP: Final = 7
_LAST_TIMESTAMP: Final = 8

Fields = tuple[int, ...]  # of a header

Header = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record; built by position, because a round may bring 60,000."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None  # since 1970, by its writer's clock; absent: it has none


@dataclass(frozen=True, slots=True)
class UnreadableBatch:
    """A batch whose records cannot be read, and why."""

    base_offset: int
    last_offset: int
    why: str


@dataclass(frozen=True, slots=True)
class RecordSet:
    """What a Fetch answer holds for one partition, up to its last complete batch."""

    records: tuple[Record, ...]  # of control batches none
    unreadable: tuple[UnreadableBatch, ...]
    next_offset: int | None  # behind the last complete batch; absent: there is none
    leader_epoch: int | None  # of that batch

    def since(self, offset: int) -> RecordSet:
        """Leave out what is before `offset`: a broker answers whole batches."""
        if not self.records or self.records[0].offset >= offset:
            return self
        return replace(self, records=tuple(r for r in self.records if r.offset >= offset))


def read_records(data: bytes) -> RecordSet:
    """Read all complete batches; one that is cut short at the end is left out."""
    records: list[Record] = []
    unreadable: list[UnreadableBatch] = []
    next_offset = leader_epoch = None
    position = 0
    while position + HEADER.size <= len(data):
        fields = HEADER.unpack_from(data, position)
        base, length, leader_epoch_here, magic, _, attributes, last_delta = fields[:7]
        end = position + LENGTH_PREFIX + length
        if not position + HEADER.size <= end <= len(data):
            break
        last = base + last_delta if magic == V2_MAGIC else base
        try:
            _check_readable(magic, attributes)
            if not attributes & CONTROL_BIT:
                records += _records(data, position + HEADER.size, end, fields)
        except (_MalformedError, IndexError) as exc:
            unreadable.append(UnreadableBatch(base, last, str(exc)))
        next_offset, leader_epoch, position = last + 1, leader_epoch_here, end
    return RecordSet(tuple(records), tuple(unreadable), next_offset, leader_epoch)


def read_batch(batch: bytes) -> tuple[Record, ...] | str:
    """Read the records of one whole batch, compressed or not; a clause that says why where it cannot be read.

    A control batch has none. With LogAppendTime all have the time at which the leader appended the batch.
    """
    fields = HEADER.unpack_from(batch)
    attributes = fields[_ATTRIBUTES]
    if attributes & CONTROL_BIT:
        return ()
    try:
        content = decompress(codec_of(attributes), batch[HEADER.size :])
        records = _records(content, 0, len(content), fields)
    except (_MalformedError, NotDecompressedError) as exc:
        return str(exc)
    except IndexError:
        return "has a record that ends early"
    if attributes & LOG_APPEND_TIME_BIT:
        return tuple(replace(record, timestamp_ms=fields[_LAST_TIMESTAMP]) for record in records)
    return tuple(records)


class _MalformedError(Exception):
    """Ends the reading of one batch."""


def _check_readable(magic: int, attributes: int) -> None:
    if magic != V2_MAGIC:
        raise _MalformedError(f"has format v{magic}")
    if attributes & CODEC_BITS:
        raise _MalformedError("is compressed")


def _records(data: bytes, position: int, end: int, fields: Fields) -> list[Record]:
    records: list[Record] = []
    for _ in range(fields[-1]):
        length, position = _varint(data, position)
        stop = position + length
        if length < 0 or stop > end:
            raise _MalformedError("has a record that ends early")
        records.append(_record(data, position, stop, fields))
        position = stop
    return records


def _record(data: bytes, position: int, stop: int, fields: Fields) -> Record:
    later_ms, position = _varint(data, position + 1)  # behind the attributes
    delta, position = _varint(data, position)
    key, position = _bytes(data, position, stop)
    value, position = _bytes(data, position, stop)
    count, position = _varint(data, position)
    headers: list[Header] = []
    for _ in range(count):
        name, position = _bytes(data, position, stop)
        content, position = _bytes(data, position, stop)
        headers.append((name or b"", content))
    if position != stop:
        raise _MalformedError("has a record of another length than it says")
    first_ms = fields[_FIRST_TIMESTAMP]
    timestamp_ms = first_ms + later_ms if first_ms >= 0 else None
    return Record(fields[0] + delta, key, value, tuple(headers), timestamp_ms)


def _bytes(data: bytes, position: int, stop: int) -> tuple[bytes | None, int]:
    length, position = _varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > stop:
        raise _MalformedError("has a field that ends early")
    return data[position:end], end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a signed (zigzag) varint and the position behind it."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > _LAST_VARINT_SHIFT:
            raise _MalformedError("has a number that does not end")
