"""A small history that is quick to make: a few days of series of all kinds, some with error."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.fs as pa_fs

from rules.baseline.blocks import METRICS
from rules.baseline.civil import civil_day
from rules.baseline.layout import day_folder
from rules.baseline.series import Metric
from service.history.blocks import Block
from service.history.days import write_day
from service.history.folder import Described, Folder, open_folder
from service.jobs.baseline_run.masks import SCHEMA
from spark.places import Place

ZONE: Final = "Europe/Berlin"
FIRST: Final = date(2026, 3, 27)  # on the 29th the clocks go forward
DAYS: Final = 5
BUCKETS: Final = 4
STEP_MS: Final = 300_000
SERIES: Final = 40
NEW_FROM: Final = 32  # these series begin on the third day
COARSE: Final = 28  # this one and the next are sampled every 15 minutes
HOUR_MS: Final = 3_600_000

METRIC_CODES: Final = np.array(
    [METRICS.index(Metric.READ_COMMITTED_LAG), METRICS.index(Metric.PRODUCE_RATE)], np.uint8
)


def day_at(place: int) -> date:
    """Return a day of the history, the first one by 0."""
    return FIRST + timedelta(days=place)


def make_weeks(path: Path, *, days: int = DAYS, buckets: int = BUCKETS) -> Folder:
    """Write the history."""
    folder = open_folder(str(path), Described(cluster="c", time_zone=ZONE, buckets=buckets))
    for place in range(days):
        write_day(folder, day_at(place), blocks_of_day(place))
    _mask(path, day_at(min(2, days - 1)), buckets)
    return folder


def series_ids() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return all series in order; they lie in all buckets."""
    spread = np.random.default_rng(7).choice(1 << 40, SERIES, replace=False)
    return np.sort(spread.astype(np.int64))


def blocks_of_day(place: int) -> list[Block]:
    """Return a day's samples: two grids, gaps, an hour that nobody measured, series that begin."""
    calendar = civil_day(day_at(place), ZONE)
    random = np.random.default_rng(100 + place)
    count = calendar.samples(STEP_MS)
    hours = np.arange(count) * STEP_MS / HOUR_MS
    level = 1000 + 400 * np.sin(hours / 24 * 2 * np.pi)
    values = level * (1 + np.arange(SERIES)[:, None] / 10) + random.normal(0, 30, (SERIES, count))
    values[random.random(values.shape) < 0.02] = np.nan
    values[3, 12:36] = np.nan
    values[5] = 0
    is_there = np.ones(SERIES, np.bool_)
    if place < 2:
        is_there[NEW_FROM:] = False
    if place == 3:
        is_there[:4] = False  # silent for a day
    is_coarse = (np.arange(SERIES) >= COARSE) & (np.arange(SERIES) < COARSE + 2)
    return [
        _block(values, is_there & ~is_coarse, calendar.start_ms, 1),
        _block(values, is_there & is_coarse, calendar.start_ms, 3),
    ]


def _block(
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    chosen: np.ndarray[tuple[int], np.dtype[np.bool_]],
    start_ms: int,
    every: int,
) -> Block:
    rows = np.flatnonzero(chosen)
    return Block(
        series_id=series_ids()[rows],
        metric=METRIC_CODES[rows % 2],
        start_ms=start_ms,
        step_ms=STEP_MS * every,
        values=values[rows, ::every].astype(np.float32),
    )


def _mask(path: Path, day: date, buckets: int) -> None:
    """Mask two hours of two series."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    start = civil_day(day, ZONE).start_ms
    for series in series_ids()[[1, 9]].tolist():
        folder = path / "masks" / f"day={day.isoformat()}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"bucket={series % buckets:03d}.parquet"
        rows = [] if not file.exists() else pq.read_table(file).to_pylist()
        rows.append(
            {"series_id": series, "start_ms": start + HOUR_MS, "end_ms": start + 3 * HOUR_MS}
        )
        rows.sort(key=lambda row: row["series_id"])
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), file)


def files_of_runs(path: Path) -> dict[str, bytes]:
    """Return all that runs consist of, by path."""
    runs = path / "runs"
    found = sorted(one for one in runs.rglob("*") if one.is_file())
    return {str(one.relative_to(runs)): one.read_bytes() for one in found}


def day_file(path: Path, place: int, bucket: int) -> Path:
    """Return the file of a bucket's samples."""
    return path / day_folder(day_at(place)) / f"bucket={bucket:03d}.parquet"


def as_place(path: Path) -> Place:
    """Return the folder as the job sees it."""
    assert isinstance(Place(str(path)).files, pa_fs.LocalFileSystem)
    return Place(str(path))
