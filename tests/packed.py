"""Builders of history for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from rules.baseline.packed import bucket_of
from rules.baseline.series import Metric, Series
from service.history.blocks import CODE_OF, SCHEMA, WRITING, Block, tables_of
from service.history.folder import Described, Folder, open_folder

STEP_MS = 30_000
HOUR_MS = 3_600_000


def history_folder(path: Path, *, buckets: int = 4, time_zone: str = "UTC") -> Folder:
    """Return a new folder of history, or the one that is there."""
    return open_folder(str(path), Described(cluster="c", time_zone=time_zone, buckets=buckets))


def block(
    ids: Sequence[int],
    values: Any,
    *,
    start_ms: int = 0,
    step_ms: int = STEP_MS,
    metric: Metric = Metric.OPEN_SPAN,
) -> Block:
    """Return a block of one metric; `values` has a row per id."""
    return Block(
        series_id=np.array(ids, np.int64),
        metric=np.full(len(ids), CODE_OF[metric], np.uint8),
        start_ms=start_ms,
        step_ms=step_ms,
        values=np.array(values, np.float32),
    )


def samples_of(blocks: Sequence[Block]) -> dict[int, dict[int, float]]:
    """Return by series and time in ms what is no gap; a time that comes twice is an error."""
    found: dict[int, dict[int, float]] = {}
    for one in blocks:
        for row, series_id in enumerate(one.series_id.tolist()):
            mine = found.setdefault(series_id, {})
            for place in np.flatnonzero(~np.isnan(one.values[row])).tolist():
                at = one.start_ms + place * one.step_ms
                assert at not in mine
                mine[at] = float(one.values[row, place])
    return found


def series(topic: str = "orders", partition: int = 0, metric: Metric = Metric.OPEN_SPAN) -> Series:
    """Return the labels of a series."""
    return Series(cluster="c", metric=metric, topic=topic, partition=partition)


def read_series(folder: Folder) -> list[tuple[int, Series, int]]:
    """Return id, labels and time of the first sample of every series of the dictionary, each once."""
    found: dict[int, tuple[int, Series, int]] = {}
    for name in folder.names("series"):
        with folder.files.open_input_file(f"series/{name}") as source:
            rows = pq.read_table(source).to_pylist()
        for row in rows:
            series_id, first_seen = row.pop("series_id"), row.pop("first_seen_ms")
            labels = Series(**{**row, "metric": Metric(row["metric"])})
            found.setdefault(series_id, (series_id, labels, first_seen))
    return list(found.values())


def write_by_bucket(stream: Any, blocks: Sequence[Block], buckets: int) -> None:
    """Write the rows of whole blocks as `write_parts` writes those of ordered parts."""
    places = [bucket_of(block.series_id, buckets) for block in blocks]
    with pq.ParquetWriter(stream, SCHEMA, **WRITING) as writer:
        for bucket in range(buckets):
            pairs = zip(blocks, places, strict=True)
            mine = [block.take(place == bucket).reported() for block, place in pairs]
            for table in tables_of(mine):
                writer.write_table(table)
