"""Rows of packed samples: from columns in memory to Parquet, and back.

A block is a table whose rows share one grid, so that its samples are one matrix. In files the rows
are in order of (series, start), at most `ROW_GROUP_ROWS` in a row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.packed import (
    ROW_GROUP_ROWS,
    SAMPLE_TYPE,
    SampleColumn,
    bucket_of,
    pack,
    packable,
)
from rules.baseline.series import Metric
from spark.schemas import SAMPLES

Int64s: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

METRICS: Final = tuple(Metric)  # in memory a metric is its place here; in files it is its name
CODE_OF: Final = {metric: code for code, metric in enumerate(METRICS)}
CODE_OF_NAME: Final = {metric.value: code for code, metric in enumerate(METRICS)}
NAMES: Final = pa.array([metric.value for metric in METRICS], pa.string())

SCHEMA: Final = pa.schema([column.with_nullable(False) for column in SAMPLES])
PACKED_AT_ONCE: Final = 64  # rows: of a day they fit in a processor's cache
# Measured on a day of 1,600 made series: level 3 takes as long as level 1 and saves a sixth; level 9
# takes three times as long and saves another eleventh.
WRITING: Final = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": [SampleColumn.METRIC.value],
    "write_statistics": [SampleColumn.SERIES_ID.value],
    "write_page_checksum": True,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Samples of many series on one grid: [row, i] was taken from start_ms + i * step_ms on."""

    series_id: Int64s  # shape (rows,), in any order; each once
    metric: Codes  # shape (rows,), places in `METRICS`
    start_ms: int  # ms since 1970-01-01 UTC, a multiple of step_ms
    step_ms: int
    values: NDArray[np.float32]  # shape (rows, samples); a gap is NaN

    def __len__(self) -> int:
        return len(self.series_id)

    @property
    def samples(self) -> int:
        """Return how many samples every row has."""
        return int(self.values.shape[1])

    @property
    def end_ms(self) -> int:
        """Return where the grid ends, exclusive."""
        return self.start_ms + self.samples * self.step_ms

    def take(self, rows: Int64s | Bools) -> Block:
        """Return some of the rows, by their places or by a mask."""
        return replace(
            self,
            series_id=self.series_id[rows],
            metric=self.metric[rows],
            values=self.values[rows],
        )

    def reported(self) -> Block:
        """Return the rows that have any sample."""
        has_some = np.flatnonzero(~np.isnan(self.values).all(axis=1))
        return self if len(has_some) == len(self) else self.take(has_some)

    def between(self, start_ms: int, end_ms: int) -> Block:
        """Return the samples whose time is at or after `start_ms` and before `end_ms`."""
        first = max(-(-(start_ms - self.start_ms) // self.step_ms), 0)
        last = min(max(-(-(end_ms - self.start_ms) // self.step_ms), first), self.samples)
        if first == 0 and last == self.samples:
            return self
        start = self.start_ms + first * self.step_ms
        return replace(self, start_ms=start, values=self.values[:, first:last])


def write_blocks(stream: Any, parts: Iterable[Sequence[Block]]) -> None:
    """Write the rows of blocks as one Parquet file, in order of (series, start).

    No series of a part comes after one of a later part; one part is held at a time.
    """
    with pq.ParquetWriter(stream, SCHEMA, **WRITING) as writer:
        for blocks in parts:
            for table in tables_of(blocks):
                writer.write_table(table)
                del table  # or it would be held while the next one is made
            del blocks


def write_parts(stream: Any, parts: Iterable[Block], buckets: int) -> None:
    """Write parts, in order of (bucket, series), as one Parquet file; every row group is of one bucket.

    So a bucket is read without the others: the first series of a row group shows its bucket. Rows
    without a sample are left out. One part is held at a time.
    """
    with pq.ParquetWriter(stream, SCHEMA, **WRITING) as writer:
        for part in parts:
            place = bucket_of(part.series_id, buckets)
            for bucket in np.unique(place).tolist():
                for table in tables_of([part.take(place == bucket).reported()]):
                    writer.write_table(table)
            del part  # or it would be held while the next one is made


def tables_of(blocks: Sequence[Block]) -> Iterator[Any]:
    """Yield the rows of blocks in order of (series, start), a row group at a time."""
    full = [block for block in blocks if len(block) and block.samples]
    if not full:
        return
    ids = np.concatenate([block.series_id for block in full])
    starts = np.concatenate([np.full(len(block), block.start_ms, np.int64) for block in full])
    source = np.repeat(np.arange(len(full)), [len(block) for block in full])
    row = np.concatenate([np.arange(len(block)) for block in full])
    order = np.lexsort((starts, ids))
    for low in range(0, len(order), ROW_GROUP_ROWS):
        part = order[low : low + ROW_GROUP_ROWS]
        yield _table(full, ids[part], source[part], row[part])


def _table(blocks: Sequence[Block], ids: Int64s, source: Int64s, row: Int64s) -> Any:
    starts = np.array([block.start_ms for block in blocks], np.int64)[source]
    steps = np.array([block.step_ms for block in blocks], np.int32)[source]
    counts = np.array([block.samples for block in blocks], np.int32)[source]
    metric = np.empty(len(ids), np.uint8)
    for place in np.unique(source):
        mine = source == place
        metric[mine] = blocks[place].metric[row[mine]]
    columns = [
        pa.array(ids),
        pa.DictionaryArray.from_arrays(pa.array(metric), NAMES).cast(pa.string()),
        pa.array(starts),
        pa.array(steps),
        pa.array(counts),
        _pack_values(blocks, source, row, counts),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _pack_values(
    blocks: Sequence[Block], source: Int64s, row: Int64s, counts: NDArray[np.int32]
) -> Any:
    first = int(source[0])
    if np.all(source == first):
        data = _pack_rows(blocks[first].values, row)
    else:
        pairs = zip(source.tolist(), row.tolist(), strict=True)
        data = b"".join(pack(blocks[place].values[line]) for place, line in pairs)
    ends = np.cumsum(counts, dtype=np.int64) * SAMPLE_TYPE.itemsize
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(row), buffers)


def _pack_rows(values: NDArray[np.float32], row: Int64s) -> Any:
    """Return a buffer of the samples of some rows."""
    packed = np.empty((len(row), values.shape[1]), SAMPLE_TYPE)
    for low in range(0, len(row), PACKED_AT_ONCE):
        some = slice(low, low + PACKED_AT_ONCE)
        packed[some] = packable(values[row[some]])
    return packed


def blocks_of(table: Any) -> list[Block]:
    """Return the rows of a table as blocks, one per grid; metrics of a newer version are left out.

    Raises:
        ValueError: the rows contradict themselves.
    """
    if not len(table):
        return []
    ids, starts, steps, counts = (
        table.column(name).to_numpy().astype(np.int64)
        for name in (
            SampleColumn.SERIES_ID,
            SampleColumn.START_MS,
            SampleColumn.STEP_MS,
            SampleColumn.COUNT,
        )
    )
    codes = _codes(table.column(SampleColumn.METRIC))
    flat, places = _flat(table.column(SampleColumn.VALUES), counts)
    if np.any(steps <= 0) or np.any(starts % np.maximum(steps, 1)):
        raise ValueError("the start of a row is not a multiple of its step")
    grids, which = _grids(np.stack([starts, steps, counts]))
    blocks = []
    for place, (start, step, count) in enumerate(grids.T.tolist()):
        rows = np.flatnonzero((which == place) & (codes >= 0))
        blocks.append(
            Block(
                series_id=ids[rows],
                metric=codes[rows].astype(np.uint8),
                start_ms=start,
                step_ms=step,
                values=_matrix(flat, places[rows], count),
            )
        )
    return [block for block in blocks if len(block)]


def _grids(columns: Int64s) -> tuple[Int64s, Int64s]:
    """Return the grids of rows, each once as a column, and which of them each row has."""
    if (columns == columns[:, :1]).all():  # as nearly always; to sort them would take longer
        return columns[:, :1], np.zeros(columns.shape[1], np.int64)
    grids, which = np.unique(columns, axis=1, return_inverse=True)
    return grids, which.reshape(-1)


def _codes(names: Any) -> Int64s:
    encoded = names.combine_chunks().dictionary_encode()
    codes = [CODE_OF_NAME.get(name, -1) for name in encoded.dictionary.to_pylist()]
    places: Int64s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.array(codes, np.int64)[places]


def _flat(column: Any, counts: Int64s) -> tuple[NDArray[np.float32], Int64s]:
    """Return all samples in one array, and where those of each row begin."""
    chunks = column.chunks if len(column.chunks) == 1 else [pa.concat_arrays(column.chunks)]
    array = chunks[0]
    _, offsets_buffer, data = array.buffers()
    first, last = array.offset, array.offset + len(array) + 1
    offsets: Int64s = np.frombuffer(offsets_buffer, np.int32)[first:last].astype(np.int64)
    if np.any(np.diff(offsets) != counts * SAMPLE_TYPE.itemsize) or offsets[0] % 4:
        raise ValueError("a row has another number of samples than its count")
    length = offsets[-1] // SAMPLE_TYPE.itemsize
    flat: NDArray[np.float32] = (
        np.frombuffer(data, SAMPLE_TYPE, count=length) if length else np.zeros(0, np.float32)
    )
    return flat, offsets[:-1] // SAMPLE_TYPE.itemsize


def _matrix(flat: NDArray[np.float32], places: Int64s, count: int) -> NDArray[np.float32]:
    if not len(places) or not count:
        return np.full((len(places), count), np.nan, np.float32)
    if np.all(np.diff(places) == count):
        first = int(places[0])
        return flat[first : first + len(places) * count].reshape(len(places), count)
    return flat.take(places[:, None] + np.arange(count))


def joined(blocks: Iterable[Block], span_ms: tuple[int, int] | None = None) -> list[Block]:
    """Join the samples of each series on one grid per step; a later block's samples win.

    A gap of a later block leaves the earlier sample. The caller takes care of blocks of different steps
    (`overlaps.without_overlaps`). The grid of a step reaches from the first
    sample of any series to the last one, or over all of `span_ms` (start, end) if it divides that.
    """
    by_step: dict[int, list[Block]] = {}
    for block in blocks:
        if len(block) and block.samples:
            by_step.setdefault(block.step_ms, []).append(block)
    return [_overlay(same, span_ms) for _, same in sorted(by_step.items())]


def _overlay(blocks: Sequence[Block], span_ms: tuple[int, int] | None) -> Block:
    step = blocks[0].step_ms
    start, end = min(part.start_ms for part in blocks), max(part.end_ms for part in blocks)
    if span_ms is not None and not any(edge % step for edge in span_ms):
        start, end = min(start, span_ms[0]), max(end, span_ms[1])
    if len(blocks) == 1 and (start, end) == (blocks[0].start_ms, blocks[0].end_ms):
        return blocks[0]
    ids = np.unique(np.concatenate([part.series_id for part in blocks]))
    metric = np.zeros(len(ids), np.uint8)
    values = np.full((len(ids), (end - start) // step), np.nan, np.float32)
    for block in blocks:
        rows = np.searchsorted(ids, block.series_id)
        metric[rows] = block.metric
        first = (block.start_ms - start) // step
        place = np.s_[rows, first : first + block.samples]
        new = block.values
        gap = np.isnan(new)
        values[place] = np.where(gap, values[place], new) if gap.any() else new
    return Block(series_id=ids, metric=metric, start_ms=start, step_ms=step, values=values)
