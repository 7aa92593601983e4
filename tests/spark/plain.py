"""The baseline run as one would write it down: one series at a time, sample by sample, without Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from rules.baseline.blocks import METRIC_CODES, BaselineBlock, DayBlock
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.daily_step import advance
from rules.baseline.layout import day_folder, masks_folder
from rules.baseline.packed import unpack
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock


def plain_runs(
    path: Path, days: list[date], zone: str
) -> dict[int, tuple[StateBlock, BaselineBlock]]:
    """Return state and baseline of every series after the last day."""
    states: dict[int, StateBlock] = {}
    metrics: dict[int, int] = {}
    last: dict[int, tuple[StateBlock, BaselineBlock]] = {}
    for day in days:
        calendar = civil_day(day, zone)
        samples = _samples(path, day)
        masks = _rows(path / masks_folder(day))
        metrics |= {
            int(str(row["series_id"])): METRIC_CODES[Metric(str(row["metric"]))] for row in samples
        }
        for series, code in metrics.items():
            mine = [row for row in samples if row["series_id"] == series]
            windows = [row for row in masks if row["series_id"] == series]
            block = _day(series, code, calendar, mine, windows)
            before = states.get(series, StateBlock.new(1))
            states[series], baseline = advance(before, block, calendar, BaselineSettings())
            last[series] = states[series], baseline
    return last


def _day(
    series: int,
    code: int,
    calendar: CivilDay,
    rows: list[dict[str, object]],
    windows: list[dict[str, object]],
) -> DayBlock:
    step = max((int(str(row["step_ms"])) for row in rows), default=30_000)
    values = np.full((1, calendar.samples(step)), np.nan, np.float32)
    masked = np.zeros(values.shape, np.bool_)
    for row in rows:
        assert isinstance(row["v"], bytes)
        for place, value in enumerate(unpack(row["v"])):
            at = int(str(row["start_ms"])) + place * int(str(row["step_ms"]))
            values[0, (at - calendar.start_ms) // step] = value
    for place in range(values.shape[1]):
        begin = calendar.start_ms + place * step
        masked[0, place] = any(
            begin < int(str(one["end_ms"])) and int(str(one["start_ms"])) < begin + step
            for one in windows
        )
    return DayBlock(
        series_id=np.array([series], np.int64),
        metric=np.array([code], np.uint8),
        step_ms=step,
        values=values,
        masked=masked if windows else None,
    )


def _samples(path: Path, day: date) -> list[dict[str, object]]:
    return _rows(path / day_folder(day))


def _rows(folder: Path) -> list[dict[str, object]]:
    return [
        row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()
    ]
