"""The write-ahead of history: rounds appended to a local file, so that a crash loses none of them.

A segment is one file with the rounds of one hour (UTC) on one grid. It is a sequence of records, each with
its length and checksum and each written at once: a record that a crash left unfinished, or a disk damaged, is
skipped, and the records around it are read (`segments`). Segments are ordered by number: later ones have
higher numbers, whatever the clock was.

    head    JSON: format, step_ms, the names of metrics
    index   number, then a series id (int64) and a metric (uint8, place in the names) per series
    labels  zstd of JSON: [[series id, cluster, metric, topic, partition, group], ...]
    round   ms since 1970-01-01 UTC, number of an index, then zstd of a float32 per series
All numbers are little endian.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rules.baseline.packed import pack
from service.history.blocks import METRICS, Codes, Int64s
from spark.places import flush

FORMAT: Final = 1
MAGIC: Final = b"tdmA"
HOUR_MS: Final = 3_600_000
FRAME: Final = struct.Struct("<4sBxxxII")  # magic, kind, length, checksum
ROUND: Final = struct.Struct("<qII")  # ms, number of the index, series
NUMBER: Final = struct.Struct("<II")  # number of the index, series
SIZE: Final = struct.Struct("<I")  # of what was compressed
NAME: Final = re.compile(r"(\d{12})\.ahead")

LABELS_AT_ONCE: Final = 8_192  # series: a reader holds about a hundred bytes for each

_ZSTD: Final = pa.Codec("zstd", compression_level=1)


class Kind(IntEnum):
    """The kind of a record."""

    HEAD = 1
    INDEX = 2
    LABELS = 3
    ROUND = 4


@dataclass(frozen=True, slots=True)
class Record:
    """One record."""

    kind: int
    payload: bytes

    def framed(self) -> bytes:
        """Return the record as bytes, with its length and checksum."""
        return (
            FRAME.pack(MAGIC, self.kind, len(self.payload), checksum_of(self.kind, self.payload))
            + self.payload
        )


def checksum_of(kind: int, payload: bytes) -> int:
    """Return the checksum of a record."""
    return zlib.crc32(payload, zlib.crc32(struct.pack("<BI", kind, len(payload))))


def head(step_ms: int) -> Record:
    """Return the first record of a segment."""
    content = {
        "format": FORMAT,
        "step_ms": step_ms,
        "metrics": [metric.value for metric in METRICS],
    }
    return Record(Kind.HEAD, json.dumps(content).encode())


def index(number: int, ids: Int64s, metric: Codes) -> Record:
    """Return the record of the series that rounds with this index number have."""
    columns = ids.astype("<i8").tobytes() + metric.astype(np.uint8).tobytes()
    return Record(Kind.INDEX, NUMBER.pack(number, len(ids)) + columns)


def labels(texts: Mapping[int, bytes]) -> Iterator[Record]:
    """Yield the labels of series from their texts (`Series.text`), some thousand per record."""
    rows = iter(texts.items())
    while some := list(islice(rows, LABELS_AT_ONCE)):
        rows_json = b",".join([b"[%d,%b" % (series_id, text[1:]) for series_id, text in some])
        yield Record(Kind.LABELS, compress(b"[" + rows_json + b"]"))


def round_record(at_ms: int, number: int, values: NDArray[np.float64]) -> Record:
    """Return the samples of one round."""
    return Record(Kind.ROUND, ROUND.pack(at_ms, number, len(values)) + compress(pack(values)))


def compress(data: bytes) -> bytes:
    """Compress, with the length before it, as `decompress` takes it."""
    return SIZE.pack(len(data)) + bytes(_ZSTD.compress(data, asbytes=True))


def decompress(data: bytes) -> Any:
    """Decompress into a buffer; raises pyarrow's errors (ValueError, OSError)."""
    (size,) = SIZE.unpack_from(data)
    return _ZSTD.decompress(memoryview(data)[SIZE.size :], decompressed_size=size)


class SegmentWriter:
    """Appends to one new segment."""

    def __init__(self, path: Path, *, hour: int, step_ms: int) -> None:
        """Make the file; `hour`: hours since 1970-01-01 UTC. Raises OSError."""
        self.path = path
        self.hour = hour
        self.step_ms = step_ms
        self.written = 0  # bytes, all of them whole records
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        try:
            self.append([head(step_ms)])
            flush(path.parent)
        except OSError:
            self.close()
            raise

    def append(self, records: Sequence[Record]) -> int:
        """Append records and flush them to disk; return the bytes written.

        Raises:
            OSError: they could not be written; the next append begins at the same place.
        """
        data = b"".join(record.framed() for record in records)
        try:
            _write(self._file, data, self.written)
            os.fsync(self._file)
        except OSError:
            self._cut()
            raise
        self.written += len(data)
        return len(data)

    def close(self) -> None:
        """Close it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _cut(self) -> None:
        """Truncate a partly written record; if that fails, readers skip it."""
        try:
            os.ftruncate(self._file, self.written)
        except OSError:
            return


def _write(file: int, data: bytes, place: int) -> None:
    left = memoryview(data)
    while left:
        count = os.pwrite(file, left, place)
        left, place = left[count:], place + count


def segment_paths(folder: Path) -> list[Path]:
    """Return the segments of a folder in order; none if there is no folder.

    Raises:
        OSError: the folder cannot be listed.
    """
    if not folder.exists():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def next_path(folder: Path) -> Path:
    """Return the path of the next segment; OSError if the folder cannot be listed."""
    last = max((int(path.name[:12]) for path in segment_paths(folder)), default=0)
    return folder / f"{last + 1:012d}.ahead"
