"""File format of past offsets: what the rounds of one hour (UTC) read, exactly and not as float32.

A file has records framed as those of the write-ahead (`ahead`): a length, a checksum, and a form that a reader
finds again behind a damaged one. All numbers are little endian, and a place is that of a record's content in
the file.

    names   zstd of JSON: cluster id, [[topic, partitions], ...], groups, and what of these the round may lack;
            then zstd of the columns of commits: group, row
    full    ms since 1970-01-01 UTC, 0, the place of its names, then zstd of masks and of columns
    change  ms, the place of the round that it differs from, the place of its names, then the same of differences

Columns are differences between offsets that are mostly 0: log start, log end, log end - high watermark, high
watermark - last stable offset, and log end - committed offset per commit. Integers are written byte plane by byte
plane, so that the upper ones compress to nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.gap import GapScope
from rules.facts.partitions import PartitionIndex
from rules.facts.snapshot import Snapshot
from service.history.ahead import SIZE, Record, compress, decompress

ROUND: Final = struct.Struct("<qQQ")  # ms, place of the round before or 0, place of the names
KINDS: Final = 4  # of offsets per partition
BYTES: Final = 8  # of an offset


class Kind(IntEnum):
    """The kind of a record."""

    NAMES = 1
    FULL = 2
    CHANGE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The partitions and commits of a round: what its columns are of."""

    cluster_id: str  # as the brokers report it
    index: PartitionIndex
    groups: tuple[str, ...]
    group: Int64s  # per commit, its place in `groups`
    row: Int64s  # per commit, its row in `index`
    has_all_topics: bool  # False: topics may have existed that are not named
    has_all_groups: bool
    partial_groups: frozenset[str]  # of `groups`: some or all of their commits could not be read

    def is_same(self, other: Names) -> bool:
        """Whether both name the same, in the same order."""
        return (
            self.cluster_id == other.cluster_id
            and self.index.topics == other.index.topics
            and self.groups == other.groups
            and self.has_all_topics == other.has_all_topics
            and self.has_all_groups == other.has_all_groups
            and self.partial_groups == other.partial_groups
            and np.array_equal(self.index.starts, other.index.starts)
            and np.array_equal(self.group, other.group)
            and np.array_equal(self.row, other.row)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The columns of a round as they are written."""

    columns: Int64s  # all of them, one behind the other
    masks: Bools  # which offsets are known: `KINDS` rows of partitions, one behind the other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundOffsets:
    """The offsets that one round read."""

    at_ms: int  # when it read the ends of partitions, ms since 1970-01-01 UTC
    names: Names
    log_start_offset: Column
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    committed_offset: Int64s  # per commit of `names`

    @classmethod
    def of(cls, snapshot: Snapshot, at_ms: int) -> RoundOffsets:
        """Return what a snapshot has; start offsets of share groups are no commits and are left out."""
        places, offsets = snapshot.offset_commits, snapshot.offsets
        names = Names(
            snapshot.cluster_id,
            snapshot.partitions.index,
            tuple(group.group_id for group in snapshot.groups),
            snapshot.commits.group[places],
            snapshot.commits.row[places],
            snapshot.placement_complete,
            snapshot.groups_complete,
            _partial_groups(snapshot),
        )
        return cls(
            at_ms=at_ms,
            names=names,
            log_start_offset=offsets.log_start_offset,
            last_stable_offset=offsets.last_stable_offset,
            high_watermark=offsets.high_watermark,
            log_end_offset=offsets.log_end_offset,
            committed_offset=snapshot.commits.committed_offset[places],
        )

    def numbers(self) -> Numbers:
        """Return the columns as they are written."""
        start, stable, high, end = (column.values for column in self._offsets)
        behind = end[self.names.row] - self.committed_offset
        return Numbers(
            np.concatenate([start, end, end - high, high - stable, behind]),
            np.concatenate([column.valid for column in self._offsets]),
        )

    @classmethod
    def from_numbers(cls, at_ms: int, names: Names, numbers: Numbers) -> RoundOffsets:
        """Return the offsets of columns that were read."""
        rows = len(names.index)
        start, end, unreplicated, open_span = numbers.columns[: KINDS * rows].reshape(KINDS, rows)
        known = numbers.masks.reshape(KINDS, rows)
        high = end - unreplicated
        return cls(
            at_ms=at_ms,
            names=names,
            log_start_offset=Column(start, known[0]),
            last_stable_offset=Column(high - open_span, known[1]),
            high_watermark=Column(high, known[2]),
            log_end_offset=Column(end, known[3]),
            committed_offset=end[names.row] - numbers.columns[KINDS * rows :],
        )

    @property
    def _offsets(self) -> Sequence[Column]:
        return (
            self.log_start_offset,
            self.last_stable_offset,
            self.high_watermark,
            self.log_end_offset,
        )


def _partial_groups(snapshot: Snapshot) -> frozenset[str]:
    """Return the groups some or all of whose commits a snapshot may lack."""
    gaps = [gap for gap in snapshot.gaps if gap.scope is GapScope.COMMITS]
    if not snapshot.placement_complete or any(not gap.group for gap in gaps):
        return frozenset(group.group_id for group in snapshot.groups)
    return snapshot.groups_without_commits


def names_record(names: Names) -> Record:
    """Return the record of the names of rounds."""
    counts = np.diff(names.index.starts).tolist()
    named = {
        "cluster_id": names.cluster_id,
        "topics": list(zip(names.index.topics, counts, strict=True)),
        "groups": list(names.groups),
        "has_all_topics": names.has_all_topics,
        "has_all_groups": names.has_all_groups,
        "partial_groups": sorted(names.partial_groups),
    }
    text = compress(json.dumps(named).encode())
    columns = compress(_planes(np.diff(np.concatenate([names.group, names.row]), prepend=0)))
    return Record(Kind.NAMES, SIZE.pack(len(text)) + text + columns)


def names_of(payload: bytes) -> Names:
    """Return the names in a record; LookupError, ValueError or one of pyarrow's errors if it is of another version."""
    (length,) = SIZE.unpack_from(payload)
    named = json.loads(bytes(decompress(payload[SIZE.size : SIZE.size + length])))
    columns = np.cumsum(_from_planes(bytes(decompress(payload[SIZE.size + length :]))))
    group, row = columns.reshape(2, -1)
    counts = {str(topic): int(count) for topic, count in named["topics"]}
    return Names(
        str(named["cluster_id"]),
        PartitionIndex.of(counts),
        tuple(map(str, named["groups"])),
        group,
        row,
        bool(named["has_all_topics"]),
        bool(named["has_all_groups"]),
        frozenset(map(str, named["partial_groups"])),
    )


def round_record(at_ms: int, numbers: Numbers, place_of_names: int) -> Record:
    """Return the record of a round that is readable by itself and its names."""
    head = ROUND.pack(at_ms, 0, place_of_names)
    return Record(Kind.FULL, head + _packed(numbers.columns, numbers.masks))


def change_record(
    at_ms: int, numbers: Numbers, before: Numbers, place_before: int, place_of_names: int
) -> Record:
    """Return the record of what a round differs by from one with the same names."""
    head = ROUND.pack(at_ms, place_before, place_of_names)
    masks: Bools = numbers.masks ^ before.masks
    return Record(Kind.CHANGE, head + _packed(numbers.columns - before.columns, masks))


def numbers_of(payload: bytes, names: Names) -> Numbers:
    """Return the columns of a round's record, or their differences.

    Raises:
        ValueError: they do not fit the names.
    """
    data = bytes(decompress(payload[ROUND.size :]))
    bits = KINDS * len(names.index)
    length = -(-bits // BYTES)
    masks = np.unpackbits(np.frombuffer(data, np.uint8, length), count=bits).astype(np.bool_)
    columns = _from_planes(data[length:])
    if len(columns) != bits + len(names.row):
        raise ValueError("a round has another number of columns than its names")
    return Numbers(columns, masks)


def _packed(columns: Int64s, masks: Bools) -> bytes:
    return compress(np.packbits(masks).tobytes() + _planes(columns))


def _planes(values: Int64s) -> bytes:
    """Return integers byte plane by byte plane, small ones of either sign with zeros in the upper ones."""
    zigzag = (values << 1) ^ (values >> 63)
    return zigzag.astype("<i8").view(np.uint8).reshape(-1, BYTES).T.tobytes()


def _from_planes(data: bytes) -> Int64s:
    planes = np.frombuffer(data, np.uint8).reshape(BYTES, -1)
    zigzag = np.ascontiguousarray(planes.T).view("<u8").reshape(-1)
    values: Int64s = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(
        np.int64
    )
    return values
