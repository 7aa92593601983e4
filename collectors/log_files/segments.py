"""Reads the batch headers of a segment (`<base offset>.log`) as a stream, in constant memory.

Records are neither read nor decompressed: the reader goes from header to header. The file is read in pieces
and not mapped, because the log of a live broker may be truncated under the reader, and a disk may be damaged:
both kill a process that has mapped the file, and here they are problems with a position. What cannot
be read is yielded among the blocks; behind damage the reading goes on at the next batch that the segment's index names.
Source: the v2 record batch layout (KIP-98); formats 0 and 1 for their sizes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collectors.log_files.checking import (
    PIECE,
    checksum_problems,
    header_problems,
    order_problems,
    sound_headers,
)
from collectors.log_files.opening import not_readable
from collectors.log_files.resuming import next_indexed_batch
from collectors.wire.batches import (
    HEADER,
    LENGTH_PREFIX,
    MARKER_BYTES,
    V2_MAGIC,
    read_control_record,
)
from rules.facts.column import Int64s
from rules.facts.log_files import (
    CONTROL_BIT,
    BatchBlock,
    ControlRecord,
    ControlType,
    FileProblem,
    ProblemKind,
)

# Of the shortest message that Kafka ever wrote (format 0), behind base offset and length.
SHORTEST: Final = 14
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_ID_AT: Final = _MAGIC_AT + 1  # bytes of a header that show its format
_LENGTH: Final = struct.Struct(">i")
_LAYOUT: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("first_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_AS_WRITTEN: Final = (
    "leader_epoch",
    "crc",
    "attributes",
    "first_timestamp_ms",
    "max_timestamp_ms",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
_CONTROL_TYPES: Final = (
    ControlType.ABORT,
    ControlType.COMMIT,
    ControlType.LEADER_CHANGE,
    ControlType.SNAPSHOT_HEADER,
    ControlType.SNAPSHOT_FOOTER,
    ControlType.KRAFT_VERSION,
    ControlType.KRAFT_VOTERS,
)

SegmentPart: TypeAlias = BatchBlock | FileProblem


def read_segment(path: Path, *, verify: bool = False) -> Iterator[SegmentPart]:
    """Yield the headers of a segment in blocks, and its problems where they are; never raises OSError.

    `verify` compares the checksum of every batch with its bytes, which reads all of the file. What is
    appended while the file is read is left out.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        yield not_readable(path, exc)
        return
    try:
        yield from _Reader(number, str(path), verify=verify).parts()
    except OSError as exc:
        yield not_readable(path, exc)
    finally:
        os.close(number)


class _Reader:
    """Goes through an open file piece by piece."""

    def __init__(self, number: int, path: str, *, verify: bool) -> None:
        self._number, self._path, self._verify = number, path, verify
        self._size = os.fstat(number).st_size
        self._previous = -1  # the last offset so far

    def parts(self) -> Iterator[SegmentPart]:
        position = 0
        while position < self._size:
            piece = os.pread(self._number, min(PIECE, self._size - position), position)
            places, after = self._walk(piece, position)
            if len(places):
                yield from self._parts_of(piece, position, places)
            problem = self._problem_behind(piece, position, after)
            position += after
            if problem is None:
                continue
            resumed = self._resume(problem, position)
            yield resumed
            if resumed.end is None:
                return
            position = resumed.end

    def _resume(self, problem: FileProblem, position: int) -> FileProblem:
        """Return the problem with the place where reading goes on, if the segment's index has one."""
        if problem.kind in (ProblemKind.ZEROS, ProblemKind.OLD_FORMAT):
            return problem
        path = Path(self._path)
        end = next_indexed_batch(path, self._number, after=position, size=self._size)
        if end is None:
            return problem
        why = f"no whole batch begins here; {end - position:,} bytes are left out, up to the next batch of the index"
        return self._problem(ProblemKind.BAD_LENGTH, position, why, end=end)

    def _walk(self, piece: bytes, position: int) -> tuple[list[int], int]:
        """Return where complete batches begin whose headers the piece holds, and where the next one does."""
        places: list[int] = []
        last, room = len(piece) - HEADER.size, self._size - position
        length_at = _LENGTH.unpack_from
        at = 0
        while at <= last:
            (length,) = length_at(piece, at + _LENGTH_AT)
            if length < SHORTEST or at + LENGTH_PREFIX + length > room:
                break
            places.append(at)
            at += LENGTH_PREFIX + length
        return places, at

    def _problem_behind(self, piece: bytes, position: int, at: int) -> FileProblem | None:
        """Return why the reading ends behind the batches of a piece; None: it goes on."""
        start, rest = position + at, self._size - position - at
        if rest == 0 or (at > 0 and at > len(piece) - HEADER.size):
            return None  # the next piece begins there
        head = piece[at : at + HEADER.size]
        if len(head) < min(rest, HEADER.size):
            why = f"the file became shorter while it was read; {rest:,} bytes are missing"
            return self._problem(ProblemKind.TRUNCATED, start, why)
        if len(head) >= LENGTH_PREFIX and not any(head) and self._is_zero_from(start):
            why = f"the last {rest:,} bytes are zero: preallocated, or lost when the machine went down"
            return self._problem(ProblemKind.ZEROS, start, why)
        return self._problem_of_head(head, start, rest)

    def _problem_of_head(self, head: bytes, start: int, rest: int) -> FileProblem:
        if len(head) < _ID_AT:
            why = f"the file ends within a batch, of which {rest:,} bytes are there"
            return self._problem(ProblemKind.TRUNCATED, start, why)
        (length,), magic = _LENGTH.unpack_from(head, _LENGTH_AT), head[_MAGIC_AT]
        whole = LENGTH_PREFIX + length
        if magic > V2_MAGIC or length < SHORTEST or (magic == V2_MAGIC and whole < HEADER.size):
            if start == 0:
                why = "is no segment of Kafka: it does not begin with a batch"
                return self._problem(ProblemKind.NOT_KAFKA, start, why)
            why = f"no batch begins here (length {length:,}); the last {rest:,} bytes are not read"
            return self._problem(ProblemKind.BAD_LENGTH, start, why)
        if whole <= rest:  # shorter than a header of format 2
            why = f"messages of format {magic}, which has no producer ids: the last {rest:,} bytes are left out"
            return self._problem(ProblemKind.OLD_FORMAT, start, why)
        why = f"the file ends within a batch of {whole:,} bytes, of which {rest:,} are there"
        return self._problem(ProblemKind.TRUNCATED, start, why)

    def _is_zero_from(self, position: int) -> bool:
        while piece := os.pread(self._number, PIECE, position):
            if piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True

    def _parts_of(self, piece: bytes, position: int, places: list[int]) -> Iterator[SegmentPart]:
        headers = _headers(piece, places)
        starts = np.array(places, np.int64) + position
        yield from self._format_problems(headers, starts)
        is_v2 = headers["magic"] == V2_MAGIC
        if not is_v2.all():
            headers, starts = headers[is_v2], starts[is_v2]
        block = self._block(headers, starts, piece, position)
        is_sound = sound_headers(block)
        if self._verify:
            yield from checksum_problems(block, self._number)
        if not is_sound.all():
            yield from header_problems(block, is_sound)
            block = self._block(headers[is_sound], starts[is_sound], piece, position)
        if len(block):
            yield from order_problems(block, self._previous)
            self._previous = int(block.last_offset[-1])
            yield block

    def _format_problems(self, headers: NDArray[np.void], starts: Int64s) -> Iterator[FileProblem]:
        """Yield a problem for each run of messages of another format; their sizes are known."""
        magic = headers["magic"]
        if (magic == V2_MAGIC).all():
            return
        sizes = headers["length"].astype(np.int64) + LENGTH_PREFIX
        edges = np.flatnonzero(np.diff(magic)) + 1
        for run in np.split(np.arange(len(magic)), edges):
            number, first, last = int(magic[run[0]]), int(starts[run[0]]), run[-1]
            if number == V2_MAGIC:
                continue
            is_old = 0 <= number < V2_MAGIC
            kind = ProblemKind.OLD_FORMAT if is_old else ProblemKind.UNKNOWN_FORMAT
            words = "which has no producer ids" if is_old else "which is not known"
            why = f"messages of format {number}, {words}: {len(run):,} are left out"
            yield self._problem(kind, first, why, end=int(starts[last] + sizes[last]))

    def _block(
        self, headers: NDArray[np.void], starts: Int64s, piece: bytes, position: int
    ) -> BatchBlock:
        columns = {name: headers[name].astype(np.int64) for name in _AS_WRITTEN}
        base = headers["base_offset"].astype(np.int64)
        control_rows = np.flatnonzero(columns["attributes"] & CONTROL_BIT)
        return BatchBlock(
            path=self._path,
            position=starts,
            size=headers["length"].astype(np.int64) + LENGTH_PREFIX,
            base_offset=base,
            last_offset=base + headers["last_offset_delta"],
            controls={
                row: self._control(piece, position, int(starts[row]))
                for row in control_rows.tolist()
            },
            **columns,
        )

    def _control(self, piece: bytes, position: int, start: int) -> ControlRecord:
        at = start - position + HEADER.size
        record = piece[at : at + MARKER_BYTES]
        if len(record) < MARKER_BYTES:
            record = os.pread(self._number, MARKER_BYTES, start + HEADER.size)
        return control_record_of(record)

    def _problem(
        self, kind: ProblemKind, position: int, why: str, *, end: int | None = None
    ) -> FileProblem:
        return FileProblem(kind=kind, path=self._path, position=position, end=end, why=why)


def control_record_of(record: bytes) -> ControlRecord:
    """Return what the first bytes of a control batch's record say."""
    control = read_control_record(record)
    if control is None or not 0 <= control[0] < len(_CONTROL_TYPES):
        return ControlRecord(ControlType.UNKNOWN)
    return ControlRecord(_CONTROL_TYPES[control[0]], control[1])


def _headers(piece: bytes, places: list[int]) -> NDArray[np.void]:
    """Return the headers that begin at these bytes, one copy for all of them."""
    # One overlapping header per byte of the piece, of which only those at the places are copied.
    every = np.ndarray((len(piece) - HEADER.size + 1,), _LAYOUT, piece, strides=(1,))
    headers: NDArray[np.void] = every[places]
    return headers
