"""One bucket of a backtest: its series are learnt day by day, as baseline runs do, and replayed by the day before.

States stay in memory, and nothing is written. Memory is that of one day of the bucket: 15 kB of state, 4 kB of
baseline and 4 bytes per sample, of each series.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.daily_step import advance
from rules.baseline.layout import bucket_file, day_folder, labels_file, masks_folder
from rules.baseline.overriding import override_settings
from rules.baseline.packed import RunColumn, SampleColumn
from rules.baseline.policy import BaselineSettings
from rules.baseline.replaying import Replay
from spark.backtest.order import BacktestOrder
from spark.damage import CheckedPlace, DamagedError
from spark.gridding import Block, Masks, blocks
from spark.places import Place
from spark.reading import Rows, Step
from spark.schemas import MASKS, SAMPLES, STATES
from spark.writing import run_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedBucket:
    """What would have opened in a bucket with one of the settings."""

    bucket: int
    setting: int  # its place in the order
    openings: Sequence[Mapping[str, Any]]  # `rules.baseline.replaying.BacktestOpening`
    earlier: Sequence[
        Mapping[str, Any]
    ]  # those that were open already at the first day that counts
    totals: Mapping[str, Mapping[str, int]]  # by metric: series, series_days
    damaged: Mapping[str, str]  # days without data, because a file is damaged, with the reason

    def to_json(self) -> str:
        """Return it as one line, for the driver."""
        return json.dumps(asdict(self), separators=(",", ":"))


def replay_bucket(order: BacktestOrder, bucket: int, setting: int) -> ReplayedBucket:
    """Replay a bucket of history.

    Raises:
        OSError: a file cannot be read now; a later try may succeed.
    """
    pa.set_cpu_count(1)  # the other cores have buckets of their own
    settings = override_settings(BaselineSettings(), order.settings[setting])
    work = _Work(order, bucket, settings)
    for day in order.days:
        work.replay_day(day)
    return ReplayedBucket(
        bucket=bucket,
        setting=setting,
        openings=[asdict(opening) for opening in work.replay.openings],
        earlier=[asdict(opening) for opening in work.replay.earlier],
        totals={
            metric: {"series": len(totals.series), "series_days": totals.series_days}
            for metric, totals in work.replay.totals.items()
        },
        damaged=work.damaged,
    )


class _Work:
    def __init__(self, order: BacktestOrder, bucket: int, settings: BaselineSettings) -> None:
        from_ms = civil_day(order.from_day, order.zone).start_ms
        self.replay = Replay(settings, from_ms)
        self.damaged: dict[str, str] = {}
        self._order, self._settings = order, settings
        self._file = bucket_file(bucket)
        self._place = Place(order.history)
        self._states = STATES.empty_table()
        self._metrics = pa.array(order.metrics, pa.string())
        self._series = None if order.series is None else np.array(order.series, np.int64)

    def replay_day(self, day: date) -> None:
        """Judge a day by the baselines of the day before, then learn from it."""
        calendar = civil_day(day, self._order.zone)
        rows, parts = [STATES.empty_table()], []
        for block in self._blocks(day, calendar):
            if day >= self._order.judged_from:
                self.replay.judge(block.day, calendar)
            states, baselines = advance(block.states, block.day, calendar, self._settings)
            rows.append(run_rows(states, baselines, STATES))
            parts.append(baselines.take(np.flatnonzero(baselines.is_kept)))
        self.replay.learn(parts)
        every = pa.concat_tables(rows)
        order = np.argsort(every.column(RunColumn.SERIES_ID.value).to_numpy())
        self._states = every.take(pa.array(order)).combine_chunks()

    def _blocks(self, day: date, calendar: CivilDay) -> list[Block]:
        """Return a day's series with their states; as a baseline run, without data if a file is damaged."""
        with suppress(DamagedError, OSError):
            return self._read(self._place, day, calendar)
        checked = CheckedPlace(self._order.history)
        try:
            with checked.proving():
                return self._read(checked, day, calendar)
        except DamagedError as exc:
            self.damaged[day.isoformat()] = str(exc)
        return self._read(None, day, calendar)

    def _read(self, place: Place | None, day: date, calendar: CivilDay) -> list[Block]:
        samples, masks = SAMPLES.empty_table(), MASKS.empty_table()
        if place is not None:
            samples = self._chosen(Rows(place, f"{day_folder(day)}/{self._file}", SAMPLES).rest())
            names = (f"{masks_folder(day)}/{self._file}", labels_file(day))
            masks = pa.concat_tables([Rows(place, name, MASKS).rest() for name in names])
        ids = [
            rows.column(RunColumn.SERIES_ID.value).to_numpy() for rows in (samples, self._states)
        ]
        step = Step(np.union1d(*ids), samples.combine_chunks(), self._states)
        return list(blocks(step, calendar, Masks.of(masks))) if len(step.series_id) else []

    def _chosen(self, samples: pa.Table) -> pa.Table:
        if len(self._metrics):
            metric = samples.column(SampleColumn.METRIC.value)
            samples = samples.filter(pc.is_in(metric, self._metrics))
        if self._series is not None:
            ids = samples.column(SampleColumn.SERIES_ID.value).to_numpy()
            samples = samples.filter(pa.array(np.isin(ids, self._series)))
        return samples
