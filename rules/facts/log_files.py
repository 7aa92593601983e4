"""What the files of a partition's log hold: batch headers as columns, and where a file cannot be read.

A segment may have millions of batches, so their headers come in blocks of columns; a row view exists for
messages and tests. Offsets, sequences and epochs are Kafka's; -1, its sign for "none", stays in the columns
and is absence in a row.
Source: the v2 record batch layout (KIP-98), control records (EndTransactionMarker and KRaft's own).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

import numpy as np

from rules.facts.column import Bools, Int64s
from rules.facts.rejections import SEQUENCES

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
NONE: Final = -1  # of a producer id, an epoch, a sequence or a timestamp


class Codec(StrEnum):
    """How the records of a batch are compressed; Kafka's own names."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"
    UNKNOWN = "unknown"  # of a newer broker


_CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


def codec_of(attributes: int) -> Codec:
    """Return the codec that the attributes of a batch name."""
    number = attributes & CODEC_BITS
    return _CODECS[number] if number < len(_CODECS) else Codec.UNKNOWN


class ControlType(StrEnum):
    """What a control record is; Kafka's own names."""

    ABORT = "ABORT"
    COMMIT = "COMMIT"
    LEADER_CHANGE = "LEADER_CHANGE"
    SNAPSHOT_HEADER = "SNAPSHOT_HEADER"
    SNAPSHOT_FOOTER = "SNAPSHOT_FOOTER"
    KRAFT_VERSION = "KRAFT_VERSION"
    KRAFT_VOTERS = "KRAFT_VOTERS"
    UNKNOWN = "UNKNOWN"  # of a newer broker, or not readable


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """The record of a control batch."""

    type: ControlType
    coordinator_epoch: int | None = None  # of the transaction coordinator; markers alone have it


class ProblemKind(StrEnum):
    """Why a file, or a part of it, cannot be read or does not fit."""

    NOT_READABLE = "not_readable"  # the system denies it: permissions, a bad disk
    NOT_KAFKA = "not_kafka"  # nothing of Kafka's has this name or this content
    TRUNCATED = (
        "truncated"  # the file ends within a batch or an entry: copied in part, or being written
    )
    ZEROS = (
        "zeros"  # from here on all bytes are 0: preallocated, or lost when the machine went down
    )
    BAD_LENGTH = (
        "bad_length"  # a batch with a length that no batch has: what follows cannot be found
    )
    BAD_HEADER = "bad_header"  # a batch whose numbers contradict each other
    BAD_CHECKSUM = "bad_checksum"  # the bytes are not those that were written
    OLD_FORMAT = "old_format"  # messages of format 0 or 1, which have no producer ids
    UNKNOWN_FORMAT = "unknown_format"  # a version newer than Tidemark knows
    BAD_RECORD = "bad_record"  # a record that is not laid out as it should be
    NO_LOG = "no_log"  # an index, a snapshot or a checkpoint whose segments are not there


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """What of one file cannot be used, and from which byte on."""

    kind: ProblemKind
    path: str
    why: str  # a clause for a person, without the path
    position: int | None = None  # byte in the file; None: the file as a whole
    end: int | None = None  # byte behind what is unusable; None: up to the file's end

    def __str__(self) -> str:
        """Return one line for a person."""
        at = "" if self.position is None else f", byte {self.position:,}"
        return f"{self.path}{at}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """The header of one batch in a file, and its control record if it is a control batch."""

    path: str
    position: int  # byte of its beginning
    size: int  # bytes, with its header
    base_offset: int
    last_offset: int
    leader_epoch: int | None  # in which it was appended
    crc: int  # as written: CRC-32C of everything behind it
    attributes: int
    first_timestamp_ms: int | None  # since 1970
    max_timestamp_ms: int | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    record_count: int
    control: ControlRecord | None = None

    @property
    def codec(self) -> Codec:
        """How its records are compressed."""
        return codec_of(self.attributes)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether it holds a marker, or another control record, instead of records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def last_sequence(self) -> int | None:
        """The sequence of its last record; None if it has none."""
        if self.base_sequence is None:
            return None
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchBlock:
    """Consecutive batches of one file, one row each; columns have the shape (rows,)."""

    path: str
    position: Int64s
    size: Int64s
    base_offset: Int64s
    last_offset: Int64s
    leader_epoch: Int64s
    crc: Int64s
    attributes: Int64s
    first_timestamp_ms: Int64s
    max_timestamp_ms: Int64s
    producer_id: Int64s
    producer_epoch: Int64s
    base_sequence: Int64s
    record_count: Int64s
    controls: Mapping[int, ControlRecord]  # by row

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.position)

    @property
    def is_transactional(self) -> Bools:
        """Which batches belong to a transaction."""
        return (self.attributes & TRANSACTIONAL_BIT).astype(np.bool_)

    @property
    def is_control(self) -> Bools:
        """Which batches are control batches."""
        return (self.attributes & CONTROL_BIT).astype(np.bool_)

    def row(self, row: int) -> LogBatch:
        """Return one batch."""
        return LogBatch(
            path=self.path,
            position=int(self.position[row]),
            size=int(self.size[row]),
            base_offset=int(self.base_offset[row]),
            last_offset=int(self.last_offset[row]),
            leader_epoch=_known(self.leader_epoch[row]),
            crc=int(self.crc[row]),
            attributes=int(self.attributes[row]),
            first_timestamp_ms=_known(self.first_timestamp_ms[row]),
            max_timestamp_ms=_known(self.max_timestamp_ms[row]),
            producer_id=_known(self.producer_id[row]),
            producer_epoch=_known(self.producer_epoch[row]),
            base_sequence=_known(self.base_sequence[row]),
            record_count=int(self.record_count[row]),
            control=self.controls.get(row),
        )

    def part(self, first: int, behind: int) -> BatchBlock:
        """Return the rows [first, behind)."""
        columns = {name: getattr(self, name)[first:behind] for name in _COLUMNS}
        controls = {row - first: control for row, control in self.controls.items()}
        return BatchBlock(path=self.path, controls=controls, **columns)

    def rows(self) -> Iterator[LogBatch]:
        """Yield the batches, in the order of the file."""
        return map(self.row, range(len(self)))


_COLUMNS: Final = tuple(
    each.name for each in fields(BatchBlock) if each.name not in ("path", "controls")
)


def _known(value: np.int64) -> int | None:
    return int(value) if value >= 0 else None
