"""Reads segments of the write-ahead, as far as a crash or a disk left them readable.

A segment is read from its file several times, record by record: an hour of a large cluster has hundreds of
megabytes unpacked, and is never held at once.
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
    HOUR_MS,
    MAGIC,
    NUMBER,
    ROUND,
    SIZE,
    Kind,
    checksum_of,
    decompress,
)
from service.history.blocks import CODE_OF_NAME, Codes, Int64s

WINDOW: Final = 2**20  # bytes that are read at once where no record is known to begin


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A whole record: its kind, its content, and where the content begins in the file."""

    kind: int
    payload: bytes
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class SegmentIndex:
    """The series of rounds; read on access, because there may be one index per round."""

    file: BinaryIO
    place: int  # of its columns in the file
    count: int
    codes: Codes  # places in `METRICS`, by the place in the segment's own list

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
    """A round of a segment; its samples are read on access, because an hour has many."""

    at_ms: int
    index: SegmentIndex
    place: int  # of its samples in the file
    length: int  # bytes of them there

    @property
    def values(self) -> NDArray[np.float32]:
        """Return a sample per series."""
        packed = _read(self.index.file, self.place, self.length)
        return np.frombuffer(decompress(packed), SAMPLE_TYPE)


@dataclass(slots=True)
class Segment:
    """The content of a segment, as far as it can be read; rounds in the order they were written.

    It can be used as long as its file is open.
    """

    step_ms: int = 0  # 0: not even its head could be read
    rounds: list[SegmentRound] = field(default_factory=list)
    series: dict[int, Series] = field(default_factory=dict)  # whose labels it has, by id
    lost_bytes: int = 0  # of records that are torn or damaged
    tail_bytes: int = 0  # of these, what follows the last whole record: it may be being written
    lost_rounds: int = 0  # whole, but which series they are of was lost


def read_segment(file: BinaryIO, *, with_labels: bool = True) -> Segment:
    """Read a segment, as far as it is readable, also while it is being written.

    Without labels `series` stays empty: an hour of a large cluster may hold those of all its series.

    Raises:
        OSError: the disk is away.
    """
    reader, whole, end = _Reader(file, with_labels=with_labels), 0, 0
    for record in records_in(file):
        whole += FRAME.size + len(record.payload)
        end = record.place + len(record.payload)
        try:
            reader.take(record)
        except (ValueError, LookupError, TypeError, struct.error, OSError):
            reader.found.lost_bytes += len(record.payload)  # its checksum fits: of another version
    size = size_of(file)
    reader.found.lost_bytes += size - whole
    reader.found.tail_bytes = size - end
    return reader.found


def hour_of(file: BinaryIO) -> int | None:
    """Return the hour of a segment by its first round, in hours since 1970-01-01 UTC.

    It is None before the first round was written.

    Raises:
        OSError: the disk is away.
    """
    for record in records_in(file):
        if record.kind == Kind.ROUND and len(record.payload) >= ROUND.size:
            at_ms: int = ROUND.unpack_from(record.payload)[0]
            return at_ms // HOUR_MS
    return None


def records_in(file: BinaryIO) -> Iterator[PlacedRecord]:
    """Yield the whole records of a segment in order.

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


def record_at(file: BinaryIO, place: int) -> PlacedRecord | None:
    """Return the record that begins at a place, None if there is no whole one.

    Raises:
        OSError: the disk is away.
    """
    return _record_at(file, place, size_of(file))


def size_of(file: BinaryIO) -> int:
    """Return the size of a file."""
    return file.seek(0, 2)


def crc_of(file: BinaryIO) -> int:
    """Return the checksum of a whole file."""
    file.seek(0)
    checksum = 0
    while data := file.read(WINDOW):
        checksum = zlib.crc32(data, checksum)
    return checksum


def _read(file: BinaryIO, place: int, length: int) -> bytes:
    file.seek(place)
    return file.read(length)


def _record_at(file: BinaryIO, place: int, size: int) -> PlacedRecord | None:
    frame = _read(file, place, FRAME.size)
    if len(frame) < FRAME.size:
        return None
    magic, kind, length, checksum = FRAME.unpack(frame)
    first = place + FRAME.size
    if magic != MAGIC or length > size - first:
        return None
    payload = file.read(length)
    if len(payload) < length:
        raise OSError(f"{len(payload)} of {length} bytes came from {first} on")
    return PlacedRecord(kind, payload, first) if checksum_of(kind, payload) == checksum else None


def _next_magic(file: BinaryIO, place: int) -> int | None:
    """Return where the next record may begin."""
    while data := _read(file, place, WINDOW):
        place_in_data = data.find(MAGIC)
        if place_in_data >= 0:
            return place + place_in_data
        if len(data) < len(MAGIC):
            return None
        place += len(data) - len(MAGIC) + 1
    return None


class _Reader:
    """Collects the records of a segment in order."""

    def __init__(self, file: BinaryIO, *, with_labels: bool) -> None:
        self.found = Segment()
        self._file = file
        self._with_labels = with_labels
        self._codes: Codes = np.zeros(0, np.uint8)
        self._indexes: dict[int, SegmentIndex] = {}
        self._names: dict[str, str] = {}  # a topic occurs thousands of times, and is held once

    def take(self, record: PlacedRecord) -> None:
        """Take a record; an exception means that another version wrote it."""
        match record.kind:
            case Kind.HEAD:
                self._take_head(record.payload)
            case Kind.INDEX:
                self._take_index(record)
            case Kind.LABELS if self._with_labels:
                self.found.series.update(_labels(record.payload, self._names))
            case Kind.ROUND:
                self._take_round(record)

    def _take_head(self, payload: bytes) -> None:
        content: Any = json.loads(payload)
        if content["format"] != FORMAT:
            raise ValueError("another format")
        codes = [CODE_OF_NAME[name] for name in content["metrics"]]
        self.found.step_ms, self._codes = int(content["step_ms"]), np.array(codes, np.uint8)

    def _take_index(self, record: PlacedRecord) -> None:
        number, count = NUMBER.unpack_from(record.payload)
        metric = np.frombuffer(record.payload, np.uint8, count, NUMBER.size + 8 * count)
        if count and metric.max() >= len(self._codes):
            raise ValueError("an index has a metric that the head of the segment does not list")
        place = record.place + NUMBER.size
        self._indexes[number] = SegmentIndex(self._file, place, count, self._codes)

    def _take_round(self, record: PlacedRecord) -> None:
        at_ms, number, count = ROUND.unpack_from(record.payload)
        index = self._indexes.get(number)
        if index is None or index.count != count:
            self.found.lost_rounds += 1
            return
        if SIZE.unpack_from(record.payload, ROUND.size) != (count * SAMPLE_TYPE.itemsize,):
            raise ValueError("a round has another number of samples than its index")
        decompress(record.payload[ROUND.size :])  # damage is found now, not while it is shipped
        place, length = record.place + ROUND.size, len(record.payload) - ROUND.size
        self.found.rounds.append(SegmentRound(at_ms, index, place, length))


def _labels(payload: bytes, names: dict[str, str]) -> Mapping[int, Series]:
    rows: Sequence[Any] = json.loads(bytes(decompress(payload)))
    return {
        int(series_id): Series(
            cluster=names.setdefault(cluster, cluster),
            metric=Metric(metric),
            topic=names.setdefault(topic, topic),
            partition=partition,
            group=names.setdefault(group, group),
            client_id=clients[0] if clients else None,
        )
        for series_id, cluster, metric, topic, partition, group, *clients in rows
    }
