"""The dictionary of series: which labels belong to an id. Parts are only added, never changed.

An id is a hash of its labels, so that the dictionary is needed only to show labels. If two series have the
same id, that is reported, and the second one is left out of history.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rules.baseline.layout import SERIES
from rules.baseline.packed import SeriesColumn
from rules.baseline.series import Series
from service.history.blocks import CODE_OF_NAME, METRICS, Bools, Int64s
from service.history.folder import Folder
from spark.damage import DamagedError

SUFFIX: Final = ".parquet"
PART_ROWS: Final = 8_192  # read or written at once

# What is read; the last one is absent in parts that an earlier version wrote.
LABELS: Final = tuple(
    column.value for column in SeriesColumn if column is not SeriesColumn.FIRST_SEEN_MS
)
SCHEMA: Final = pa.schema(
    [
        pa.field(SeriesColumn.SERIES_ID, pa.int64(), nullable=False),
        pa.field(SeriesColumn.CLUSTER, pa.string(), nullable=False),
        pa.field(SeriesColumn.METRIC, pa.string(), nullable=False),
        pa.field(SeriesColumn.TOPIC, pa.string()),
        pa.field(SeriesColumn.PARTITION, pa.int32()),
        pa.field(SeriesColumn.GROUP, pa.string()),
        pa.field(SeriesColumn.FIRST_SEEN_MS, pa.int64(), nullable=False),
        pa.field(SeriesColumn.CLIENT_ID, pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The result of adding series."""

    new: int
    collisions: Mapping[int, Series]  # by id: series that another one with the same id keeps out


class Dictionary:
    """The dictionary of one folder, as far as it was read; one writer at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known_series: _KnownSeries | None = None
        self.damaged: dict[str, str] = {}  # parts that were set aside, and why

    def add(self, series: Mapping[int, Series], first_seen_ms: int) -> Added:
        """Add those of the series, by id, that are new, as one part.

        Raises:
            StoreError: the folder cannot be read or written; nothing was added.
        """
        loaded = self._load()
        ids = np.fromiter(series, np.int64, len(series))
        hashes = np.fromiter(map(hash, series.values()), np.int64, len(series))
        is_new, is_other = loaded.compared(ids, hashes)
        if is_new.any():
            path = f"{SERIES}/part-{first_seen_ms:014d}-{uuid4().hex[:8]}{SUFFIX}"
            new = compress(series.items(), is_new.tolist())
            self._folder.write(path, lambda stream: _write(stream, new, first_seen_ms))
            self._known_series = loaded.with_more(ids[is_new], hashes[is_new])
        collided = compress(series.items(), is_other.tolist())
        return Added(new=int(np.count_nonzero(is_new)), collisions=dict(collided))

    def _load(self) -> _KnownSeries:
        if self._known_series is None:
            loaded = _KnownSeries.none()
            for name in self._folder.names(SERIES):
                if name.endswith(SUFFIX):
                    loaded = self._with_part(loaded, f"{SERIES}/{name}")
            self._known_series = loaded
        return self._known_series

    def _with_part(self, loaded: _KnownSeries, path: str) -> _KnownSeries:
        """Add a part; a damaged one is set aside as a whole, so that its series are new again."""
        try:
            ids, hashes = self._folder.read(path, _read_part)
        except DamagedError as exc:
            self._folder.set_aside(path)
            self.damaged[path] = str(exc)
            return loaded
        is_new, _ = loaded.compared(ids, hashes)
        return loaded.with_more(ids[is_new], hashes[is_new])


@dataclass(frozen=True, slots=True, eq=False)
class _KnownSeries:
    """The known series, as arrays: a Python dict would take eight times the memory."""

    ids: Int64s  # in order
    hashes: Int64s  # of the labels, in this process

    @classmethod
    def none(cls) -> _KnownSeries:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def compared(self, ids: Int64s, hashes: Int64s) -> tuple[Bools, Bools]:
        """Return which of some series are new, and which have the id of another one."""
        if not len(self.ids):
            return np.ones(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
        places = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        is_new = self.ids[places] != ids
        return is_new, ~is_new & (self.hashes[places] != hashes)

    def with_more(self, ids: Int64s, hashes: Int64s) -> _KnownSeries:
        """Return these series and more, all of which are new."""
        both = np.concatenate([self.ids, ids])
        order = np.argsort(both)
        return _KnownSeries(both[order], np.concatenate([self.hashes, hashes])[order])


def _read_part(source: Any) -> tuple[Int64s, Int64s]:
    """Return the ids of a part's series, each once, and the hashes of their labels."""
    ids, hashes = array("q"), array("q")
    for series_id, labels in _rows(source):
        ids.append(series_id)
        hashes.append(hash(labels))
    unique, first = np.unique(np.array(ids, np.int64), return_index=True)
    return unique, np.array(hashes, np.int64)[first]


def _rows(source: Any) -> Iterator[tuple[int, Series]]:
    file = pq.ParquetFile(source)
    present = set(file.schema_arrow.names)
    columns = [column for column in LABELS if column in present]
    absent = [column for column in LABELS if column not in present]
    for batch in file.iter_batches(PART_ROWS, columns=columns, use_threads=False):
        for values in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            row = (*values, *(None for _ in absent))
            series_id, cluster, metric, topic, partition, group, client_id = row
            code = CODE_OF_NAME.get(metric)
            if code is not None:
                labels = Series(
                    cluster=cluster,
                    metric=METRICS[code],
                    topic=topic,
                    partition=partition,
                    group=group,
                    client_id=client_id,
                )
                yield series_id, labels


def _write(stream: Any, series: Iterator[tuple[int, Series]], first_seen_ms: int) -> None:
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        while some := list(islice(series, PART_ROWS)):
            writer.write_table(_table(some, first_seen_ms))


def _table(series: Sequence[tuple[int, Series]], first_seen_ms: int) -> Any:
    labels = [series_labels for _, series_labels in series]
    columns = [
        pa.array([series_id for series_id, _ in series], pa.int64()),
        pa.array([label.cluster for label in labels], pa.string()),
        pa.array([label.metric.value for label in labels], pa.string()),
        pa.array([label.topic for label in labels], pa.string()),
        pa.array([label.partition for label in labels], pa.int32()),
        pa.array([label.group for label in labels], pa.string()),
        pa.array([first_seen_ms] * len(labels), pa.int64()),
        pa.array([label.client_id for label in labels], pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
