"""Writes one bucket's file of a run, with the digests of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.baseline_run import BucketRun
from rules.baseline.blocks import METRICS, OUTCOMES, PROFILES, REASONS, THRESHOLDS_BY, BaselineBlock
from rules.baseline.packed import ROW_GROUP_ROWS, RunColumn
from rules.baseline.state import STATE_BYTES, StateBlock
from spark.digests import RowDigest
from spark.places import Place
from spark.schemas import PUBLISHED, REMEMBERED, RUN

CODES: Final = {
    "metric": pa.array([member.value for member in METRICS]),
    "outcome": pa.array([member.value for member in OUTCOMES]),
    "reason": pa.array([member.value for member in REASONS]),
    "profile": pa.array([member.value for member in PROFILES]),
    "threshold_by": pa.array([member.value for member in THRESHOLDS_BY]),
}
BANDS: Final = ("mid", "upper", "lower")
# States are stored as they are: zstd makes an eighth less of them, and takes as long as all else that is
# done to write them, and longer than that to read them.
COMPRESSION: Final = {name: "none" if name == RunColumn.STATE else "zstd" for name in RUN.names}
LEVELS: Final = {name: 1 for name, codec in COMPRESSION.items() if codec == "zstd"}


class RunWriter:
    """Takes series in order, and writes whole groups of rows."""

    def __init__(self, file: pq.ParquetWriter) -> None:
        self._file = file
        self._waiting: list[pa.Table] = []
        self._digest = RowDigest(PUBLISHED)
        self._state_digest = RowDigest(REMEMBERED)
        self._outcomes: Counter[str] = Counter()

    def add(self, rows: pa.Table) -> None:
        """Take the next series, as `run_rows` makes them."""
        self._digest.add(rows)
        self._state_digest.add(rows)
        self._outcomes.update(rows.column(RunColumn.OUTCOME.value).to_pylist())
        self._waiting.append(rows)
        while sum(batch.num_rows for batch in self._waiting) >= ROW_GROUP_ROWS:
            whole = pa.concat_tables(self._waiting)
            self._file.write_table(whole.slice(0, ROW_GROUP_ROWS), ROW_GROUP_ROWS)
            self._waiting = [whole.slice(ROW_GROUP_ROWS)]

    def finish(self) -> None:
        """Write what is left."""
        left = pa.concat_tables([RUN.empty_table(), *self._waiting])
        if left.num_rows:
            self._file.write_table(left, ROW_GROUP_ROWS)

    def reported(self, bucket: int, damaged: str | None) -> BucketRun:
        """Return the record of what was written."""
        return BucketRun(
            bucket=bucket,
            rows=self._digest.rows,
            digest=self._digest.hex(),
            state_digest=self._state_digest.hex(),
            outcomes=dict(sorted(self._outcomes.items())),
            damaged=damaged,
        )


@contextmanager
def writing_run(place: Place, name: str) -> Iterator[RunWriter]:
    """Give the writer of a file, which exists only if all of it was written.

    Raises:
        OSError: it cannot be written.
    """
    with (
        place.writing(name) as stream,
        pq.ParquetWriter(
            stream,
            RUN,
            compression=COMPRESSION,
            compression_level=LEVELS,
            use_dictionary=list(CODES),
            write_statistics=[RunColumn.SERIES_ID.value],
            write_page_checksum=True,
            store_schema=False,
        ) as file,
    ):
        writer = RunWriter(file)
        yield writer
        writer.finish()


def run_rows(states: StateBlock, baselines: BaselineBlock, schema: pa.Schema = RUN) -> pa.Table:
    """Return the rows of some series, without those that are not kept; `schema` has columns of `RUN`."""
    if not baselines.is_kept.all():
        rows = np.flatnonzero(baselines.is_kept)
        states, baselines = states.take(rows), baselines.take(rows)
    columns = [_column(name, states, baselines) for name in schema.names]
    return pa.table(columns, schema=schema)


def _column(name: str, states: StateBlock, baselines: BaselineBlock) -> pa.Array:
    if name == RunColumn.STATE:
        return _state_rows(states)
    column = getattr(baselines, name)
    if name in CODES:
        return CODES[name].take(_plain(column, pa.uint8()))
    if name in BANDS:
        return _blocks(column, baselines.slots)
    if name == RunColumn.CHANGED_AT_MS:
        return pa.array(column, pa.int64(), mask=column == 0)
    return _plain(column, RUN.field(name).type)


def _plain(column: NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    """Return numbers as they are; `pa.array` searches for pandas each time, which is slow."""
    values = np.ascontiguousarray(column, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _state_rows(states: StateBlock) -> pa.Array:
    offsets = np.arange(len(states) + 1, dtype=np.int32) * STATE_BYTES
    records = np.ascontiguousarray(states.records).view(np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(records)]
    return pa.Array.from_buffers(pa.binary(), len(states), buffers)


def _blocks(column: NDArray[np.float32], slots: NDArray[np.int32]) -> pa.Array:
    """Return the first `slots` values of every row as little-endian bytes."""
    is_there = np.arange(column.shape[1]) < slots[:, None]
    data = column.astype("<f4", copy=False)[is_there].tobytes()
    offsets = np.concatenate([[0], np.cumsum(slots, dtype=np.int32) * 4]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(slots), buffers)
