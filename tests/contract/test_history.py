"""What `service.history` writes is what `spark` reads: the same samples, in the same places."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from rules.baseline.civil import civil_day
from rules.baseline.layout import bucket_file, day_folder
from rules.baseline.packed import bucket_of
from rules.baseline.series import Metric
from service.history.blocks import Block, joined
from service.history.days import day_bounds, write_day
from service.history.folder import Folder
from spark.gridding import Masks, blocks
from spark.places import Place
from spark.reading import Rows, steps
from spark.schemas import MASKS, SAMPLES, STATES
from tests.packed import block, history_folder, samples_of

pytestmark = pytest.mark.integration

BERLIN = "Europe/Berlin"
BUCKETS = 4


def spark_reads(path: Path, day: date, zone: str) -> dict[int, dict[int, float]]:
    """Return by series and time what Spark's tasks hand to the night's core."""
    place, calendar = Place(str(path)), civil_day(day, zone)
    found: dict[int, dict[int, float]] = {}
    for bucket in range(BUCKETS):
        rows = Rows(place, f"{day_folder(day)}/{bucket_file(bucket)}", SAMPLES)
        for step in steps(rows, Rows(place, None, STATES)):
            for one in blocks(step, calendar, Masks.of(MASKS.empty_table())):
                ids = one.day.series_id
                assert set(bucket_of(ids, BUCKETS).tolist()) == {bucket}
                read = Block(
                    series_id=ids,
                    metric=one.day.metric,
                    start_ms=calendar.start_ms,
                    step_ms=one.day.step_ms,
                    values=one.day.values,
                )
                found |= samples_of([read])
    return found


def folder_of(path: Path) -> Folder:
    return history_folder(path, buckets=BUCKETS, time_zone=BERLIN)


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 7, 1), 24)]
)
def test_a_civil_day_is_read_as_it_was_written(tmp_path: Path, day: date, hours: int) -> None:
    start, end = day_bounds(day, BERLIN)
    assert end - start == hours * 3_600_000
    draw = np.random.default_rng(1)
    ids = draw.permutation(1500).astype(np.int64).tolist()
    values = draw.lognormal(3, 2, (len(ids), hours * 12)).astype(np.float32)
    values[draw.random(values.shape) < 0.1] = np.nan
    values[7] = np.nan  # a series that told nothing
    written = block(ids, values, start_ms=start, step_ms=300_000, metric=Metric.CONSUME_RATE)
    write_day(folder_of(tmp_path), day, [written])
    assert spark_reads(tmp_path, day, BERLIN) == samples_of([written])


def test_half_days_and_steps_that_changed_are_read_too(tmp_path: Path) -> None:
    day = date(2026, 7, 1)
    start, end = day_bounds(day, BERLIN)
    noon = start + 12 * 3_600_000
    parts = [
        block([1, 2, 6], np.ones((3, 60)), start_ms=start, step_ms=30_000),
        block([2, 3], np.full((2, 120), 2.0), start_ms=noon, step_ms=30_000),
        block([5], np.full((1, 48), 3.0), start_ms=noon, step_ms=900_000),
    ]
    write_day(folder_of(tmp_path), day, joined(parts, (start, end)))
    assert spark_reads(tmp_path, day, BERLIN) == samples_of(joined(parts))


def test_a_series_whose_step_changed_is_read_on_the_coarser_one(tmp_path: Path) -> None:
    day = date(2026, 7, 1)
    start, _ = day_bounds(day, BERLIN)
    fine = block([1], [[1.0, 2.0, 3.0, 4.0]], start_ms=start, step_ms=15_000)
    coarse = block([1], [[9.0]], start_ms=start + 60_000, step_ms=30_000)
    write_day(folder_of(tmp_path), day, [fine, coarse])
    assert spark_reads(tmp_path, day, BERLIN)[1] == {
        start: 2.0,
        start + 30_000: 4.0,
        start + 60_000: 9.0,
    }
