"""Rows of a run's files as rows of the table `baselines`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rules.baseline.packed import ADDED_COLUMNS, RunColumn
from service.storage.baselines.binary_copy import Arrays, Field, Texts, encode_rows, number_field
from service.storage.baselines.series_labels import NONE, SeriesLabels
from service.storage.tables.core import BASELINES

ARRAYS: Final = ("mid", "upper", "lower")
# `RunRows.rows` encodes them in this order.
COLUMNS: Final = tuple(BASELINES.columns.keys())
EPOCH_2000_MS: Final = 946_684_800_000  # PostgreSQL's, as ms since 1970-01-01 UTC
FLOAT_BYTES: Final = 4


class RunRows:
    """Encodes the rows of one run; counts series without known labels."""

    def __init__(self, run: int, labels: SeriesLabels) -> None:
        self.unlabelled = 0
        self._run = run
        self._labels = labels
        self._topics = Texts(labels.topic.texts)
        self._groups = Texts(labels.group.texts)
        self._clients = Texts(labels.client.texts)

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """Return a batch as rows of the binary format.

        Raises:
            ValueError: an array is not as long as its row says.
        """
        ids = batch.column(RunColumn.SERIES_ID).to_numpy()
        slots = batch.column(RunColumn.SLOTS).to_numpy().astype(np.int64)
        arrays = [_arrays(batch, name, slots) for name in ARRAYS]
        fields = [
            number_field(np.full(ids.size, self._run), "i8"),
            number_field(ids, "i8"),
            _text(batch, RunColumn.METRIC),
            *self._label_fields(ids),
            _text(batch, RunColumn.OUTCOME),
            _text(batch, RunColumn.REASON),
            _text(batch, RunColumn.PROFILE),
            number_field(slots, "i4"),
            _real(batch, RunColumn.THRESHOLD),
            _text(batch, RunColumn.THRESHOLD_BY),
            _real(batch, RunColumn.DELTA),
            _real(batch, RunColumn.SLOPE),
            _time(batch, RunColumn.CHANGED_AT_MS),
            _real(batch, RunColumn.CHANGED_BEFORE),
            _real(batch, RunColumn.CHANGED_AFTER),
            number_field(batch.column(RunColumn.DAYS).to_numpy(), "i4"),
            *(_real_or_null(batch, name) for name in ADDED_COLUMNS),
        ]
        return encode_rows(fields, arrays)

    def _label_fields(self, ids: NDArray[np.int64]) -> list[Field]:
        rows = self._labels.rows_of(ids)
        is_known = rows != NONE
        self.unlabelled += int(rows.size - is_known.sum())
        partition = _take(self._labels.partition, rows)
        return [
            self._topics.field(_take(self._labels.topic.numbers, rows)),
            number_field(partition, "i4", partition != NONE),
            self._groups.field(_take(self._labels.group.numbers, rows)),
            self._clients.field(_take(self._labels.client.numbers, rows)),
        ]


def _take(numbers: NDArray[np.int32], rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the numbers of rows, NONE where there is no row."""
    return np.append(numbers, np.int32(NONE))[rows] if rows.size else np.empty(0, np.int32)


def _text(batch: pa.RecordBatch, name: str) -> Field:
    column = batch.column(name).dictionary_encode()
    numbers = pc.fill_null(column.indices, NONE).to_numpy(zero_copy_only=False)
    return Texts(column.dictionary.to_pylist()).field(numbers)


def _real(batch: pa.RecordBatch, name: str) -> Field:
    values = batch.column(name).to_numpy(zero_copy_only=False)
    return number_field(values, "f4", ~np.isnan(values))


def _real_or_null(batch: pa.RecordBatch, name: str) -> Field:
    """Return a column that runs of the former format do not have: null there."""
    if name in batch.schema.names:
        return _real(batch, name)
    return number_field(np.zeros(len(batch)), "f4", np.zeros(len(batch), np.bool_))


def _time(batch: pa.RecordBatch, name: str) -> Field:
    column = batch.column(name)
    timestamps = pc.fill_null(column, EPOCH_2000_MS).to_numpy(zero_copy_only=False)
    is_known = column.is_valid().to_numpy(zero_copy_only=False)
    return number_field((timestamps - EPOCH_2000_MS) * 1000, "i8", is_known)


def _arrays(batch: pa.RecordBatch, name: str, slots: NDArray[np.int64]) -> Arrays:
    column = pc.fill_null(batch.column(name), b"").cast(pa.large_binary())
    _, offset_bytes, data = column.buffers()
    offsets = np.frombuffer(offset_bytes, np.int64)[column.offset :][: len(column) + 1]
    if (np.diff(offsets) != slots * FLOAT_BYTES).any() or (offsets % FLOAT_BYTES).any():
        raise ValueError(f"an array {name} is not as long as its row says")
    values = np.frombuffer(data or b"", "<f4", count=int(offsets[-1]) // FLOAT_BYTES)
    return Arrays(values=values, starts=offsets[:-1] // FLOAT_BYTES, counts=slots)
