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
from numpy.typing import NDArray

from collectors.wire.cursor import Cursor, encode_uvarint
from rules.facts.column import Bools, Int64s

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
    return list_offsets_layout(body).blocks()


def list_offsets_layout(body: bytes | bytearray) -> Layout:
    """Return the layout of a ListOffsets answer; errors are those of `read_list_offsets`."""
    reader = _Reader(body, _OFFSET)
    for _ in range(reader.length()):
        reader.topic()
    reader.no_tags()
    return reader.layout()


def read_offset_fetch(body: bytes | bytearray) -> list[GroupBlock]:
    """Read an OffsetFetch answer of version 8 or 9.

    Raises:
        IrregularError: a commit carries metadata text or tagged fields, the body ends early, or
            has a name that is not UTF-8.
    """
    return offset_fetch_layout(body)[1]


def offset_fetch_layout(body: bytes | bytearray) -> tuple[Layout, list[GroupBlock]]:
    """Return the layout of an OffsetFetch answer too; errors are those of `read_offset_fetch`."""
    reader = _Reader(body, _COMMIT)
    groups: list[tuple[str, int, int]] = []
    for _ in range(reader.length()):
        group_id, topics = reader.text(), reader.length()
        for _ in range(topics):
            reader.topic()
        groups.append((group_id, topics, reader.int16()))
        reader.no_tags()
    reader.no_tags()
    layout = reader.layout()
    blocks = iter(layout.blocks())
    return layout, [
        GroupBlock(group_id, tuple(islice(blocks, topics)), error)
        for group_id, topics, error in groups
    ]


class _Reader(Cursor):
    """A cursor that gathers topics.

    The records of all topics are gathered and turned into columns at once. Whether they are of
    fixed size is known only then, so that what was read behind an irregular one may be nonsense:
    it ends early, or `layout` finds the irregular record, which itself was read where it is.
    """

    __slots__ = ("_record", "_topics", "_whole")

    def __init__(self, body: bytes | bytearray, record: np.dtype[np.void]) -> None:
        super().__init__(body, _THROTTLE_BYTES, IrregularError)
        self._record = record
        self._whole = body
        self._topics: list[tuple[str, int, int]] = []  # name, first byte, records

    def no_tags(self) -> None:
        if self.uvarint():
            raise IrregularError("has tagged fields")

    def topic(self) -> None:
        name, count = self.text(), self.length()
        self._topics.append((name, self.position, count))
        self.take(count * self._record.itemsize)
        self.no_tags()

    def layout(self) -> Layout:
        """Return the layout of what was read."""
        layout = Layout(self._whole, self._record, self._topics)
        raw = layout.raw(self._whole)
        if raw["tags"].any():
            raise IrregularError("has tagged fields")
        if self._record is _COMMIT and (raw["metadata"] > _EMPTY_OR_NONE).any():
            raise IrregularError("has metadata text")
        return layout


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """All records of an answer, in its order, as columns of equal length."""

    partition: Int64s
    error: Int64s
    offset: Int64s
    leader_epoch: Int64s

    @classmethod
    def of(cls, raw: NDArray[np.void]) -> Records:
        """Return the columns of the records."""
        return cls(*(raw[name].astype(np.int64) for name in _BLOCK_COLUMNS))


class Layout:
    """An answer, and where its records are: a later one that has them there too is read at once.

    Groups, topics and partitions of two rounds are nearly always the same; offsets are not.
    """

    def __init__(
        self,
        body: bytes | bytearray,
        record: np.dtype[np.void],
        topics: Sequence[tuple[str, int, int]],
    ) -> None:
        """`topics` are names, each with the first byte and the number of its records."""
        self.body = np.frombuffer(body, np.uint8)
        self._record = record
        self._topics = topics
        self._may_differ: Bools | None = None  # by byte

    def __len__(self) -> int:
        """Return the number of records."""
        return sum(count for _, _, count in self._topics)

    def blocks(self) -> list[TopicBlock]:
        """Return the topics of the answer, in its order."""
        records = Records.of(self.raw(self.body.data))
        columns = records.partition, records.error, records.offset, records.leader_epoch
        blocks: list[TopicBlock] = []
        start = 0
        for name, _, count in self._topics:
            stop = start + count
            blocks.append(TopicBlock(name, *(column[start:stop] for column in columns)))
            start = stop
        return blocks

    def read(self, body: bytes | bytearray) -> Records | None:
        """Read an answer that has other offsets and leader epochs; None if it differs in anything else."""
        if len(body) != len(self.body):
            return None
        if self._may_differ is None:
            self._may_differ = self._mark_changing()
        differs = np.flatnonzero(np.frombuffer(body, np.uint8) != self.body)
        return Records.of(self.raw(body)) if self._may_differ[differs].all() else None

    def raw(self, body: bytes | bytearray | memoryview) -> NDArray[np.void]:
        """Return the records of an answer that has this layout."""
        size, view = self._record.itemsize, memoryview(body)
        pieces = [view[first : first + count * size] for _, first, count in self._topics]
        return np.frombuffer(b"".join(pieces), self._record)

    def _mark_changing(self) -> Bools:
        """Mark the bytes of offsets and leader epochs, and what is before the first array."""
        mask = np.zeros(len(self.body), np.bool_)
        mask[:_THROTTLE_BYTES] = True
        size, nothing = self._record.itemsize, [np.zeros(0, np.int64)]
        first = np.concatenate(
            nothing + [start + size * np.arange(count) for _, start, count in self._topics]
        )
        for name in ("offset", "leader_epoch"):
            kind, at = self._record.fields[name][:2]  # type: ignore[index]
            mask[first[:, None] + at + np.arange(kind.itemsize)] = True
        return mask
