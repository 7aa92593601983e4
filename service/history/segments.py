"""Reads segments of the write-ahead, whatever a crash or a disk left of them.

A segment is read from its file again and again, record by record: an hour of a large cluster is hundreds
of megabytes when it is unpacked, and never held at once.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.packed import SAMPLE_TYPE
from rules.baseline.series import Metric, Series
from service.history.ahead import (
    FORMAT,
    FRAME,
    MAGIC,
    NUMBER,
    ROUND,
    SIZE,
    Kind,
    checksum_of,
    unsqueezed,
)
from service.history.blocks import CODE_OF_NAME, Codes, Int64s

WINDOW: Final = 2**20  # bytes that are read at once where no record is known to begin


@dataclass(frozen=True, slots=True)
class Found:
    """A whole record: its kind, its content, and where that begins in the file."""

    kind: int
    payload: bytes
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class SegmentIndex:
    """Which series rounds have; read when it is asked for: there may be one for every round."""

    file: BinaryIO
    place: int  # of its columns in the file
    count: int
    codes: Codes  # places in `METRICS` by the places of metrics that the segment tells

    @property
    def ids(self) -> Int64s:
        """Return a series id per sample, in any order; each once."""
        return np.frombuffer(_read(self.file, self.place, 8 * self.count), "<i8").astype(np.int64)

    @property
    def metric(self) -> Codes:
        """Return a metric per sample, as its place in `METRICS`."""
        place = self.place + 8 * self.count
        return self.codes[np.frombuffer(_read(self.file, place, self.count), np.uint8)]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRound:
    """A round of a segment; its samples are read when they are asked for: an hour has many."""

    at_ms: int
    index: SegmentIndex
    place: int  # of its samples in the file
    length: int  # bytes of them there

    @property
    def values(self) -> NDArray[np.float32]:
        """Return a sample per series."""
        packed = _read(self.index.file, self.place, self.length)
        return np.frombuffer(unsqueezed(packed), SAMPLE_TYPE)


@dataclass(slots=True)
class Segment:
    """What a segment holds, as far as it can be read; rounds in the order they were written.

    It can be asked for as long as its file is open.
    """

    step_ms: int = 0  # 0: not even its head could be read
    rounds: list[SegmentRound] = field(default_factory=list)
    series: dict[int, Series] = field(default_factory=dict)  # whose labels it tells, by id
    lost_bytes: int = 0  # of records that are torn or damaged
    lost_rounds: int = 0  # whole, but which series they are of was lost


def read_segment(file: BinaryIO) -> Segment:
    """Read a segment from whatever is left of it.

    Raises:
        OSError: the disk is away.
    """
    reader, whole = _Reader(file), 0
    for record in records_in(file):
        whole += FRAME.size + len(record.payload)
        try:
            reader.take(record)
        except (ValueError, LookupError, TypeError, struct.error, OSError):
            reader.found.lost_bytes += len(record.payload)  # its checksum fits: of another version
    reader.found.lost_bytes += size_of(file) - whole
    return reader.found


def records_in(file: BinaryIO) -> Iterator[Found]:
    """Give the whole records of a segment in their order.

    Raises:
        OSError: the disk is away.
    """
    place: int | None = 0
    size = size_of(file)
    while place is not None:
        record = _record_at(file, place, size)
        if record is None:
            place = _next_magic(file, place + 1)
        else:
            place = record.place + len(record.payload)
            yield record


def size_of(file: BinaryIO) -> int:
    """Return how long a file is."""
    return file.seek(0, 2)


def crc_of(file: BinaryIO) -> int:
    """Return the checksum of a whole file."""
    file.seek(0)
    found = 0
    while data := file.read(WINDOW):
        found = zlib.crc32(data, found)
    return found


def _read(file: BinaryIO, place: int, length: int) -> bytes:
    file.seek(place)
    return file.read(length)


def _record_at(file: BinaryIO, place: int, size: int) -> Found | None:
    frame = _read(file, place, FRAME.size)
    if len(frame) < FRAME.size:
        return None
    magic, kind, length, checksum = FRAME.unpack(frame)
    first = place + FRAME.size
    if magic != MAGIC or length > size - first:
        return None
    payload = file.read(length)
    return Found(kind, payload, first) if checksum_of(kind, payload) == checksum else None


def _next_magic(file: BinaryIO, place: int) -> int | None:
    """Return where the next record may begin."""
    while data := _read(file, place, WINDOW):
        found = data.find(MAGIC)
        if found >= 0:
            return place + found
        if len(data) < len(MAGIC):
            return None
        place += len(data) - len(MAGIC) + 1
    return None


class _Reader:
    """Takes the records of a segment in their order."""

    def __init__(self, file: BinaryIO) -> None:
        self.found = Segment()
        self._file = file
        self._codes: Codes = np.zeros(0, np.uint8)
        self._indexes: dict[int, SegmentIndex] = {}
        self._names: dict[str, str] = {}  # a topic is told thousands of times, and held once

    def take(self, record: Found) -> None:
        """Take what a record tells; what it raises says that it is of another version."""
        match record.kind:
            case Kind.HEAD:
                self._take_head(record.payload)
            case Kind.INDEX:
                self._take_index(record)
            case Kind.LABELS:
                self.found.series.update(_labels(record.payload, self._names))
            case Kind.ROUND:
                self._take_round(record)

    def _take_head(self, payload: bytes) -> None:
        told: Any = json.loads(payload)
        if told["format"] != FORMAT:
            raise ValueError("another format")
        codes = [CODE_OF_NAME[name] for name in told["metrics"]]
        self.found.step_ms, self._codes = int(told["step_ms"]), np.array(codes, np.uint8)

    def _take_index(self, record: Found) -> None:
        number, count = NUMBER.unpack_from(record.payload)
        metric = np.frombuffer(record.payload, np.uint8, count, NUMBER.size + 8 * count)
        if count and metric.max() >= len(self._codes):
            raise ValueError("an index has a metric that the segment does not tell")
        place = record.place + NUMBER.size
        self._indexes[number] = SegmentIndex(self._file, place, count, self._codes)

    def _take_round(self, record: Found) -> None:
        at_ms, number, count = ROUND.unpack_from(record.payload)
        index = self._indexes.get(number)
        if index is None or index.count != count:
            self.found.lost_rounds += 1
            return
        if SIZE.unpack_from(record.payload, ROUND.size) != (count * SAMPLE_TYPE.itemsize,):
            raise ValueError("a round has another number of samples than it says")
        unsqueezed(
            record.payload[ROUND.size :]
        )  # what cannot be unpacked is told now, not while it is shipped
        place, length = record.place + ROUND.size, len(record.payload) - ROUND.size
        self.found.rounds.append(SegmentRound(at_ms, index, place, length))


def _labels(payload: bytes, names: dict[str, str]) -> Mapping[int, Series]:
    rows: Sequence[Any] = json.loads(bytes(unsqueezed(payload)))
    return {
        int(series_id): Series(
            cluster=names.setdefault(cluster, cluster),
            metric=Metric(metric),
            topic=names.setdefault(topic, topic),
            partition=partition,
            group=names.setdefault(group, group),
        )
        for series_id, cluster, metric, topic, partition, group in rows
    }
