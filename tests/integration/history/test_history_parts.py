"""A bucket is folded some series at a time: nothing is lost, torn apart or told twice at the seams."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from rules.baseline.packed import ROW_GROUP_ROWS
from service.history.blocks import Block, write_blocks
from service.history.days import DayReader, RowGroups, day_bounds
from service.history.folder import Folder
from service.history.folding import fold_due
from service.history.merging import BucketRows, in_parts
from tests.packed import HOUR_MS, STEP_MS, block, history_folder, samples_of, write_by_bucket

pytestmark = pytest.mark.integration

DAY = date(1970, 1, 2)
FIRST_HOUR = 24
SERIES = 9_000  # more than two row groups in each of four buckets
DRAW = np.random.default_rng(7)


def hour_of(ids: Sequence[int], hour: int, step_ms: int = STEP_MS) -> Block:
    """Return two samples per series, which tell the series and the hour."""
    values = np.array(ids, np.float32)[:, None] * 100 + hour + np.array([0, 0.5], np.float32)
    return block(ids, values, start_ms=hour * HOUR_MS, step_ms=step_ms)


def write_hour(folder: Folder, *blocks: Block) -> None:
    hour = blocks[0].start_ms // HOUR_MS - FIRST_HOUR
    path = f"hours/hour={DAY.isoformat()}T{hour:02d}/part-{len(blocks)}.parquet"
    folder.write(path, partial(write_by_bucket, blocks=blocks, buckets=folder.buckets))


def some(share: float) -> list[int]:
    return np.flatnonzero(DRAW.random(SERIES) < share).tolist()


def read(folder: Folder) -> list[Block]:
    reader = DayReader(folder, DAY)
    rows = [one for bucket in reader.buckets() for one in reader.blocks(bucket)]
    assert not reader.damaged
    return rows


def test_series_that_differ_from_hour_to_hour_are_all_folded(tmp_path: Path) -> None:
    folder = history_folder(tmp_path / "history")
    hours = [hour_of(some(share), FIRST_HOUR + hour) for hour, share in enumerate((1, 0.5, 0.9))]
    later = [hour_of(some(0.7), FIRST_HOUR + 20), hour_of(some(0.2), FIRST_HOUR + 20, HOUR_MS // 2)]
    for one in hours:
        write_hour(folder, one)
    fold_due(folder, before=date(1970, 1, 3), lock=tmp_path / "lock")
    write_hour(folder, *later)  # of two steps, so that a series has two rows; late
    fold_due(folder, before=date(1970, 1, 3), lock=tmp_path / "lock")
    for step in (STEP_MS, HOUR_MS // 2):
        written = [one for one in (*hours, *later) if one.step_ms == step]
        there = [one for one in read(folder) if one.step_ms == step]
        assert samples_of(there) == samples_of(written)


def test_an_hour_replaces_what_its_day_has_at_that_time_on_another_grid(tmp_path: Path) -> None:
    folder = history_folder(tmp_path / "history")
    before = [hour_of(range(9), FIRST_HOUR + hour) for hour in range(2)]
    late = hour_of(range(3, 6), FIRST_HOUR, HOUR_MS // 2)
    for one in (*before, late):
        write_hour(folder, one)
        fold_due(folder, before=date(1970, 1, 3), lock=tmp_path / "lock")
    there = samples_of([one for one in read(folder) if one.step_ms == STEP_MS])
    expected = samples_of(before)
    for series in range(3, 6):
        expected[series] = samples_of([before[1]])[series]
    assert there == expected
    assert samples_of([one for one in read(folder) if one.step_ms != STEP_MS]) == samples_of([late])


def test_rows_of_a_day_are_in_order_and_row_groups_are_full(tmp_path: Path) -> None:
    folder = history_folder(tmp_path / "history", buckets=1)
    for hour in range(3):
        write_hour(folder, hour_of(range(SERIES), FIRST_HOUR + hour))
    fold_due(folder, before=date(1970, 1, 3), lock=tmp_path / "lock")
    rows = read(folder)
    ids = np.concatenate([one.series_id for one in rows])
    assert ids.tolist() == list(range(SERIES))
    assert [len(one) for one in rows] == [ROW_GROUP_ROWS] * 8 + [SERIES - 8 * ROW_GROUP_ROWS]


def test_no_part_holds_more_than_the_row_groups_that_begin_with_it(tmp_path: Path) -> None:
    folder = history_folder(tmp_path / "history", buckets=1)
    for hour in range(3):
        write_hour(folder, hour_of(range(SERIES), FIRST_HOUR + hour))
    parts = [[len(one) for one in chain(*part)] for part in in_parts(rows_of(folder))]
    assert parts == [[ROW_GROUP_ROWS] * 3] * 8 + [[SERIES - 8 * ROW_GROUP_ROWS] * 3]


def test_a_file_that_is_not_in_order_is_read_whole(tmp_path: Path) -> None:
    folder = history_folder(tmp_path / "history", buckets=1)
    write_hour(folder, hour_of(range(SERIES), FIRST_HOUR))
    parts = [[hour_of(range(5_000, 6_000), 25)], [hour_of(range(1_000), 25)]]
    folder.write(
        f"hours/hour={DAY.isoformat()}T01/part-1.parquet",
        lambda stream: write_blocks(stream, parts),
    )
    assert [sum(map(len, chain(*part))) for part in in_parts(rows_of(folder))] == [SERIES + 2_000]


def rows_of(folder: Folder) -> list[BucketRows]:
    """Return the rows of all hours of a folder that has one bucket."""
    hours = [f"hours/{hour}" for hour in folder.names("hours")]
    paths = [f"{hour}/{part}" for hour in hours for part in folder.names(hour)]
    span = day_bounds(DAY, "UTC")
    return [BucketRows(RowGroups(folder, path), 0, 1, span) for path in paths]
