"""The dictionary of series: which labels belong to an id. Parts are only added, never changed.

An id is a hash of its labels, so that the dictionary gives labels alone. Two series with one id are
told, and the second one is left out of history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from rules.baseline.layout import SERIES
from rules.baseline.packed import SeriesColumn
from rules.baseline.series import Metric, Series
from service.history.blocks import CODE_OF_NAME, METRICS
from service.history.folder import READ_ERRORS, Folder, store_errors

SUFFIX: Final = ".parquet"
PART_ROWS: Final = 65_536  # read at once

SCHEMA: Final = pa.schema(
    [
        pa.field(SeriesColumn.SERIES_ID, pa.int64(), nullable=False),
        pa.field(SeriesColumn.CLUSTER, pa.string(), nullable=False),
        pa.field(SeriesColumn.METRIC, pa.string(), nullable=False),
        pa.field(SeriesColumn.TOPIC, pa.string()),
        pa.field(SeriesColumn.PARTITION, pa.int32()),
        pa.field(SeriesColumn.GROUP, pa.string()),
        pa.field(SeriesColumn.FIRST_SEEN_MS, pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What came of adding series."""

    new: int
    collisions: Mapping[int, Series]  # by id: series that another one with the same id keeps out


class Dictionary:
    """The dictionary of one folder, as far as it was read; one writer at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[int, int] | None = None  # id -> hash of its labels, of this process
        self.damaged: dict[str, str] = {}  # parts that were set aside, and why

    def add(self, series: Mapping[int, Series], first_seen_ms: int) -> Added:
        """Add those of the series, by id, that are new, as one part.

        Raises:
            StoreError: the folder cannot be read or written; nothing was added.
        """
        known = self._loaded()
        new: dict[int, Series] = {}
        collisions: dict[int, Series] = {}
        for series_id, labels in series.items():
            there = known.get(series_id)
            if there is None:
                new[series_id] = labels
            elif there != hash(labels):
                collisions[series_id] = labels
        if new:
            path = f"{SERIES}/part-{first_seen_ms:014d}-{uuid4().hex[:8]}{SUFFIX}"
            table = _table(new, first_seen_ms)
            self._folder.write(
                path, lambda stream: pq.write_table(table, stream, compression="zstd")
            )
            known.update((series_id, hash(labels)) for series_id, labels in new.items())
        return Added(new=len(new), collisions=collisions)

    def _loaded(self) -> dict[int, int]:
        if self._known is None:
            known: dict[int, int] = {}
            for series_id, labels, _ in read_series(self._folder, self.damaged):
                known.setdefault(series_id, hash(labels))
            self._known = known
            for path in self.damaged:
                self._folder.set_aside(path)
        return self._known


def read_series(
    folder: Folder, damaged: dict[str, str] | None = None
) -> Iterator[tuple[int, Series, int]]:
    """Give id, labels and when it was first seen (ms since 1970-01-01 UTC) of every series, once.

    A part that cannot be read is left out, and told in `damaged`: path and why.

    Raises:
        StoreError: the folder cannot be read.
    """
    seen: set[int] = set()
    for name in folder.names(SERIES):
        if not name.endswith(SUFFIX):
            continue
        path = f"{SERIES}/{name}"
        with store_errors(folder.url):
            source = folder.files.open_input_file(path)
        try:
            for series_id, labels, first_seen in _rows(source):
                if series_id not in seen:
                    seen.add(series_id)
                    yield series_id, labels, first_seen
        except READ_ERRORS as exc:
            if damaged is not None:
                damaged[path] = next(iter(str(exc).splitlines()), type(exc).__name__)


def _rows(source: Any) -> Iterator[tuple[int, Series, int]]:
    file = pq.ParquetFile(source)
    columns = [column.value for column in SeriesColumn]
    for batch in file.iter_batches(PART_ROWS, columns=columns, use_threads=False):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            series_id, cluster, metric, topic, partition, group, first_seen = row
            code = CODE_OF_NAME.get(metric)
            if code is not None:
                labels = Series(
                    cluster=cluster,
                    metric=METRICS[code],
                    topic=topic,
                    partition=partition,
                    group=group,
                )
                yield series_id, labels, first_seen


def _table(series: Mapping[int, Series], first_seen_ms: int) -> Any:
    labels = list(series.values())
    metrics: list[Metric] = [one.metric for one in labels]
    columns = [
        pa.array(list(series), pa.int64()),
        pa.array([one.cluster for one in labels], pa.string()),
        pa.array([metric.value for metric in metrics], pa.string()),
        pa.array([one.topic for one in labels], pa.string()),
        pa.array([one.partition for one in labels], pa.int32()),
        pa.array([one.group for one in labels], pa.string()),
        pa.array([first_seen_ms] * len(labels), pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
