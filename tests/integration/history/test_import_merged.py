"""Merging of an import: a series whose id another one has is left out, and costs what is recorded nothing."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rules.baseline.layout import bucket_file, day_folder
from rules.baseline.packed import bucket_of
from rules.baseline.series import Metric, Series
from service.history.blocks import CODE_OF, Block, write_blocks
from service.history.days import DayReader, day_bounds, write_day
from service.history.dictionary import Dictionary
from service.history.folder import Described, Folder, open_folder
from service.history.importing import merge
from service.history.labels import read_windows
from spark.schemas import MASKS

pytestmark = pytest.mark.integration

DAY = date(2026, 11, 20)
BEGIN = day_bounds(DAY, "UTC")[0]
STAGING = "imports/import=1"
BUCKETS = 2
COLLIDES, NEW = 7, 9  # ids of one bucket


def block(values: dict[int, list[float]]) -> Block:
    return Block(
        series_id=np.array(list(values)),
        metric=np.full(len(values), CODE_OF[Metric.OPEN_SPAN], np.uint8),
        start_ms=BEGIN,
        step_ms=60_000,
        values=np.array(list(values.values()), np.float32),
    )


def stage(folder: Folder, topics: dict[int, str], values: dict[int, list[float]]) -> None:
    """Pack what an import would, with a labelled window of each series."""
    (bucket,) = set(bucket_of(np.array(list(values)), BUCKETS).tolist())
    path = f"{STAGING}/{day_folder(DAY)}/{bucket_file(bucket)}"
    folder.write(path, lambda stream: write_blocks(stream, [[block(values)]]))
    rows = [
        {"series_id": key, "metric": "open_span", "topic": topic, "partition": 0, "group": None}
        for key, topic in topics.items()
    ]
    windows = pa.table(
        [pa.array([number] * len(topics), pa.int64()) for number in (0, BEGIN, BEGIN + 60_000)],
        schema=MASKS,
    ).set_column(0, MASKS.field(0), pa.array(list(topics), pa.int64()))
    write_table(folder, f"{STAGING}/series.parquet", pa.Table.from_pylist(rows))
    write_table(folder, f"{STAGING}/labels/day={DAY}/{bucket_file(bucket)}", windows)


def write_table(folder: Folder, path: str, table: Any) -> None:
    folder.write(path, lambda stream: pq.write_table(table, stream))


def samples(folder: Folder) -> dict[int, list[float]]:
    reader = DayReader(folder, DAY)
    blocks = [block for bucket in reader.buckets() for block in reader.blocks(bucket)]
    return {
        key: values[~np.isnan(values)].tolist()
        for block in blocks
        for key, values in zip(block.series_id.tolist(), block.values, strict=True)
    }


def test_a_collided_series_is_left_out_and_what_is_recorded_stays(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path), Described(cluster="c", time_zone="UTC", buckets=BUCKETS))
    own = Series(cluster="c", metric=Metric.OPEN_SPAN, topic="recorded", partition=0, group=None)
    Dictionary(folder).add({COLLIDES: own}, BEGIN)
    write_day(folder, DAY, [block({COLLIDES: [1, 2, 3]})])
    stage(
        folder,
        {COLLIDES: "other", NEW: "new"},
        {COLLIDES: [9, 9, 9, 9], NEW: [5, 6, 7, 8]},
    )
    merged = merge(folder, STAGING, lambda *_: None)
    assert samples(folder) == {COLLIDES: [1, 2, 3], NEW: [5, 6, 7, 8]}
    assert read_windows(folder, DAY)[:, 0].tolist() == [NEW]
    assert (merged.samples, merged.kept, merged.incidents, merged.collided) == (4, 0, 1, 1)
