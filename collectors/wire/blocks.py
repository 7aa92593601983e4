"""ListOffsets and OffsetFetch bodies, written and read as blocks of fixed-size records.

These two carry nearly all bytes of a round. In their flexible versions every partition is a record
of fixed size as long as it has no tagged fields (and, for a commit, no metadata text), so that a
topic is one NumPy view instead of thousands of Python objects. Whatever does not have that shape
is reported as such, and the caller reads it with the general codec.
Source: ListOffsetsRequest.json and -Response.json v6 to v10, OffsetFetchResponse.json v8 and v9.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Int64s

TIMEOUT_FIELD_SINCE: Final = 10

_ASKED: Final = np.dtype(
    [("partition", ">i4"), ("leader_epoch", ">i4"), ("timestamp", ">i8"), ("tags", "u1")]
)
_OFFSET: Final = np.dtype(
    [
        ("partition", ">i4"),
        ("error", ">i2"),
        ("timestamp", ">i8"),
        ("offset", ">i8"),
        ("leader_epoch", ">i4"),
        ("tags", "u1"),
    ]
)
_COMMIT: Final = np.dtype(
    [
        ("partition", ">i4"),
        ("offset", ">i8"),
        ("leader_epoch", ">i4"),
        ("metadata", "u1"),  # length + 1 of an empty text, or 0 for none
        ("error", ">i2"),
        ("tags", "u1"),
    ]
)
_EMPTY_OR_NONE: Final = 1


@dataclass(frozen=True, slots=True)
class OffsetKind:
    """Which of a partition's offsets a ListOffsets request asks for.

    Timestamp -1 is the latest offset, -2 the earliest. Isolation 1 is read_committed. Replica id
    -1 is an ordinary client; -2 is the debugging consumer, which any replica answers with its
    own log end offset.
    """

    name: str
    replica_id: int
    isolation: int
    timestamp: int


LOG_START_OFFSET: Final = OffsetKind("log_start_offset", -1, 0, -2)
LAST_STABLE_OFFSET: Final = OffsetKind("last_stable_offset", -1, 1, -1)
HIGH_WATERMARK: Final = OffsetKind("high_watermark", -1, 0, -1)
LOG_END_OFFSET: Final = OffsetKind("log_end_offset", -2, 0, -1)


class IrregularError(Exception):
    """The body is valid but not made of fixed-size records: read it with the codec."""


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """The partitions of one topic, as columns of equal length."""

    topic: str
    partition: Int64s
    error: Int64s
    offset: Int64s
    leader_epoch: Int64s


@dataclass(frozen=True, slots=True)
class GroupBlock:
    """What one group committed; `error` is the group's own error code."""

    group_id: str
    topics: tuple[TopicBlock, ...]
    error: int


@dataclass(frozen=True, slots=True, eq=False)
class AskedTopic:
    """The partitions of one topic to ask about, with the epochs to fence by (-1: do not fence)."""

    topic: str
    partition: Int64s
    leader_epoch: Int64s


def list_offsets_body(
    topics: Sequence[AskedTopic], kind: OffsetKind, *, version: int, timeout_ms: int
) -> bytes:
    """Return the body of a ListOffsets request in version 6 to 10."""
    parts = [struct.pack(">ib", kind.replica_id, kind.isolation), _uvarint(len(topics) + 1)]
    for asked in topics:
        records = np.zeros(len(asked.partition), _ASKED)
        records["partition"] = asked.partition
        records["leader_epoch"] = asked.leader_epoch
        records["timestamp"] = kind.timestamp
        name = asked.topic.encode()
        parts += [_uvarint(len(name) + 1), name, _uvarint(len(records) + 1)]
        parts += [records.tobytes(), b"\0"]
    if version >= TIMEOUT_FIELD_SINCE:
        parts.append(struct.pack(">i", timeout_ms))
    return b"".join([*parts, b"\0"])


def read_list_offsets(body: bytes | bytearray) -> list[TopicBlock]:
    """Read a ListOffsets answer of version 6 to 10.

    Raises:
        IrregularError: it has tagged fields, ends early, or has a name that is no text.
    """
    reader = _Reader(body, position=4)  # throttle time
    topics = [reader.topic(_OFFSET) for _ in range(reader.array_length())]
    reader.no_tags()
    return topics


def read_offset_fetch(body: bytes | bytearray) -> list[GroupBlock]:
    """Read an OffsetFetch answer of version 8 or 9.

    Raises:
        IrregularError: a commit carries metadata text or tagged fields, the body ends early, or
            has a name that is no text.
    """
    reader = _Reader(body, position=4)
    groups = list(_groups(reader))
    reader.no_tags()
    return groups


def _groups(reader: _Reader) -> Iterator[GroupBlock]:
    for _ in range(reader.array_length()):
        group_id = reader.text()
        topics = tuple(reader.topic(_COMMIT) for _ in range(reader.array_length()))
        yield GroupBlock(group_id, topics, reader.int16())
        reader.no_tags()


class _Reader:
    """A position in a body; every method reads one thing and moves on."""

    __slots__ = ("_body", "_position")

    def __init__(self, body: bytes | bytearray, position: int) -> None:
        self._body = body
        self._position = position

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            if self._position >= len(self._body):
                raise IrregularError("ends early")
            byte = self._body[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def array_length(self) -> int:
        return max(self.uvarint() - 1, 0)

    def text(self) -> str:
        length = self.array_length()
        end = self._position + length
        if end > len(self._body):
            raise IrregularError("ends early")
        try:
            text = bytes(self._body[self._position : end]).decode()
        except UnicodeDecodeError as exc:
            raise IrregularError("has a name that is no text") from exc
        self._position = end
        return text

    def int16(self) -> int:
        value = int.from_bytes(self._body[self._position : self._position + 2], "big", signed=True)
        self._position += 2
        return value

    def no_tags(self) -> None:
        if self.uvarint():
            raise IrregularError("has tagged fields")

    def records(self, layout: np.dtype[np.void], count: int) -> NDArray[np.void]:
        end = self._position + count * layout.itemsize
        if end > len(self._body):
            raise IrregularError("ends early")
        records: NDArray[np.void] = np.frombuffer(self._body, layout, count, self._position)
        self._position = end
        return records

    def topic(self, layout: np.dtype[np.void]) -> TopicBlock:
        name = self.text()
        records = self.records(layout, self.array_length())
        if records["tags"].any():
            raise IrregularError("has tagged fields")
        if layout is _COMMIT and (records["metadata"] > _EMPTY_OR_NONE).any():
            raise IrregularError("has metadata text")
        self.no_tags()
        return TopicBlock(
            name,
            partition=_int64(records["partition"]),
            error=_int64(records["error"]),
            offset=_int64(records["offset"]),
            leader_epoch=_int64(records["leader_epoch"]),
        )


def _int64(values: NDArray[Any]) -> Int64s:
    return values.astype(np.int64)


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
