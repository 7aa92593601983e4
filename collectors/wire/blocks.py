"""ListOffsets and OffsetFetch bodies, written and read as blocks of fixed-size records.

These two carry nearly all bytes of a round. In their flexible versions every partition is a record
of fixed size as long as it has no tagged fields (and, for a commit, no metadata text), so that a
topic is one NumPy view instead of thousands of Python objects. Any other body raises
`IrregularError`, and the caller reads it with the general codec.
Source: ListOffsetsRequest.json and -Response.json v6 to v10, OffsetFetchResponse.json v8 and v9.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from collectors.wire.cursor import Cursor, encode_uvarint
from rules.facts.column import Int64s

TIMEOUT_FIELD_SINCE: Final = 10

_REQUESTED: Final = np.dtype(
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
_THROTTLE_BYTES: Final = 4  # what is before the first array of either answer
_BLOCK_COLUMNS: Final = ("partition", "error", "offset", "leader_epoch")


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
    lag: Int64s | None = None  # None: the answer has none; negative: the broker does not know it

    @classmethod
    def of(
        cls,
        topic: str,
        entries: Sequence[Any],
        *,
        offset: str = "offset",
        leader_epoch: str = "leader_epoch",
        lag: str | None = None,
    ) -> TopicBlock:
        """Return the block of partitions as the codec reads them, by the names of their fields."""
        names = ["partition_index", "error_code", offset, leader_epoch]
        names += [] if lag is None else [lag]
        columns = ([int(getattr(entry, name)) for entry in entries] for name in names)
        return cls(topic, *(np.array(column, np.int64) for column in columns))


@dataclass(frozen=True, slots=True)
class GroupBlock:
    """What one group committed; `error` is the group's own error code."""

    group_id: str
    topics: tuple[TopicBlock, ...]
    error: int


@dataclass(frozen=True, slots=True, eq=False)
class TopicRequest:
    """The partitions of one topic to ask about, with the epochs to fence by (-1: do not fence)."""

    topic: str
    partition: Int64s
    leader_epoch: Int64s


def list_offsets_body(
    topics: Sequence[TopicRequest], kind: OffsetKind, *, version: int, timeout_ms: int
) -> bytes:
    """Return the body of a ListOffsets request in version 6 to 10."""
    parts = [struct.pack(">ib", kind.replica_id, kind.isolation), encode_uvarint(len(topics) + 1)]
    for topic in topics:
        records = np.zeros(len(topic.partition), _REQUESTED)
        records["partition"] = topic.partition
        records["leader_epoch"] = topic.leader_epoch
        records["timestamp"] = kind.timestamp
        name = topic.topic.encode()
        parts += [encode_uvarint(len(name) + 1), name, encode_uvarint(len(records) + 1)]
        parts += [records.tobytes(), b"\0"]
    if version >= TIMEOUT_FIELD_SINCE:
        parts.append(struct.pack(">i", timeout_ms))
    return b"".join([*parts, b"\0"])


def read_list_offsets(body: bytes | bytearray) -> list[TopicBlock]:
    """Read a ListOffsets answer of version 6 to 10.

    Raises:
        IrregularError: it has tagged fields, ends early, or has a name that is not UTF-8.
    """
    reader = _Reader(body, _OFFSET)
    for _ in range(reader.length()):
        reader.topic()
    reader.no_tags()
    return reader.blocks()


def read_offset_fetch(body: bytes | bytearray) -> list[GroupBlock]:
    """Read an OffsetFetch answer of version 8 or 9.

    Raises:
        IrregularError: a commit carries metadata text or tagged fields, the body ends early, or
            has a name that is not UTF-8.
    """
    reader = _Reader(body, _COMMIT)
    groups: list[tuple[str, int, int]] = []
    for _ in range(reader.length()):
        group_id, topics = reader.text(), reader.length()
        for _ in range(topics):
            reader.topic()
        groups.append((group_id, topics, reader.int16()))
        reader.no_tags()
    reader.no_tags()
    blocks = iter(reader.blocks())
    return [
        GroupBlock(group_id, tuple(islice(blocks, topics)), error)
        for group_id, topics, error in groups
    ]


class _Reader(Cursor):
    """A cursor that gathers topics.

    The records of all topics are gathered and turned into columns at once. Whether they are of
    fixed size is known only then, so that what was read behind an irregular one may be nonsense:
    it ends early, or `blocks` finds the irregular record, which itself was read where it is.
    """

    __slots__ = ("_chunks", "_layout", "_topics")

    def __init__(self, body: bytes | bytearray, layout: np.dtype[np.void]) -> None:
        super().__init__(body, _THROTTLE_BYTES, IrregularError)
        self._layout = layout
        self._chunks: list[memoryview] = []
        self._topics: list[tuple[str, int]] = []

    def no_tags(self) -> None:
        if self.uvarint():
            raise IrregularError("has tagged fields")

    def topic(self) -> None:
        name, count = self.text(), self.length()
        self._chunks.append(self.take(count * self._layout.itemsize))
        self._topics.append((name, count))
        self.no_tags()

    def blocks(self) -> list[TopicBlock]:
        """Return the topics read so far, in their order."""
        records = np.frombuffer(b"".join(self._chunks), self._layout)
        if records["tags"].any():
            raise IrregularError("has tagged fields")
        if self._layout is _COMMIT and (records["metadata"] > _EMPTY_OR_NONE).any():
            raise IrregularError("has metadata text")
        columns: list[Int64s] = [records[name].astype(np.int64) for name in _BLOCK_COLUMNS]
        blocks: list[TopicBlock] = []
        start = 0
        for name, count in self._topics:
            stop = start + count
            blocks.append(TopicBlock(name, *(column[start:stop] for column in columns)))
            start = stop
        return blocks
