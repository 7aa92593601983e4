"""From samples in order to packed rows of days, written by the task that has them: docs/decisions/0004.

The grid of a series is found day by day from its own times: the usual distance between two of them, in whole
seconds that divide a quarter of an hour. No more than a day of a series, and `HELD_BYTES` of packed rows, are held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.blocks import METRICS
from rules.baseline.civil import QUARTER_MS, civil_day
from rules.baseline.layout import DAY, DAYS, LABELS, bucket_file
from rules.baseline.packed import MaskColumn, SampleColumn, pack
from spark.history_import.order import ImportOrder
from spark.history_import.schemas import OUTCOME_ARROW, PLACED
from spark.places import Place
from spark.schemas import MASKS, SAMPLES

SECOND_MS: Final = 1000
LONE_STEP_MS: Final = 60_000  # of a day's only sample
STEPS: Final = np.array(
    [SECOND_MS * s for s in range(1, 901) if QUARTER_MS % (SECOND_MS * s) == 0], np.int64
)
EARLY: Final = 1.02  # clocks of what measures are a little fast
MOST_CELLS: Final = 1.5  # per sample: a day with half of its cells empty is not learnt from
HELD_BYTES: Final = 32 << 20

Int64s = NDArray[np.int64]


@dataclass(kw_only=True)
class Packed:
    """What became of a bucket's samples."""

    bucket: int
    samples: int = 0  # that are packed
    repeated: int = 0  # at a time that another one has, or in its cell of the grid
    incidents: int = 0  # windows
    steps: dict[str, int] = field(default_factory=dict)  # ms -> rows

    def to_json(self) -> str:
        """Return it as one line, for the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Packed:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def step_of(times: Int64s) -> int:
    """Return the step of a grid for times in order, in ms: the greatest one that is hardly above the usual distance.

    With a greater one, samples share a cell, and one of them is lost. That is taken only where the lesser one would
    leave many cells empty.
    """
    distances = np.diff(times)
    distances = distances[distances > 0]
    if not len(distances):
        return LONE_STEP_MS
    usual = np.partition(distances, (len(distances) - 1) // 2)[(len(distances) - 1) // 2]
    place = int(np.searchsorted(STEPS, usual * EARLY, side="right")) - 1
    place += bool(usual > MOST_CELLS * STEPS[place])
    return int(STEPS[min(max(place, 0), len(STEPS) - 1)])


def cells_of(times: Int64s, step: int, day: date, zone: str) -> Int64s:
    """Return the cells of times in order.

    A time is in the cell that it is in, unless times that scatter around the edges of cells share some and leave
    others empty: then the usual time is the middle of its cell.
    """
    cells = times // step
    lost = _shared(cells)
    if not lost:
        return cells
    angles = np.exp(2j * np.pi * (times % step) / step)
    usual = int(np.angle(angles.mean()) / (2 * np.pi) * step) % step
    civil = civil_day(day, zone)  # begins and ends with a cell
    centred = (times - usual + step // 2) // step
    centred = centred.clip(civil.start_ms // step, civil.end_ms // step - 1)
    return centred if _shared(centred) < lost else cells


def _shared(cells: Int64s) -> int:
    return int(np.count_nonzero(np.diff(cells) == 0))


def pack_bucket_rows(
    order: ImportOrder, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the days of buckets whose rows come in order, and yield an outcome for each."""
    pa.set_cpu_count(1)  # the other cores have buckets of their own
    writer: _BucketWriter | None = None
    for part in _series_days(order, batches):
        if writer is None or part.bucket != writer.packed.bucket:
            yield from _finish(writer)
            writer = _BucketWriter(order, part.bucket)
        writer.add(part)
    yield from _finish(writer)


def _finish(writer: _BucketWriter | None) -> Iterator[pa.RecordBatch]:
    if writer is not None:
        packed = writer.finish()
        row = {"bucket": packed.bucket, "outcome": packed.to_json()}
        yield pa.RecordBatch.from_pylist([row], schema=OUTCOME_ARROW)


@dataclass(frozen=True, slots=True, eq=False)
class _SeriesDay:
    """The samples of one series on one civil day, in order of time and value."""

    bucket: int
    series_id: int
    metric: int
    day: date
    times: Int64s
    values: NDArray[np.float64]
    is_incident: NDArray[np.bool_]


def _series_days(order: ImportOrder, batches: Iterator[pa.RecordBatch]) -> Iterator[_SeriesDay]:
    held: list[NDArray[Any]] = []
    bounds = _Days(order.zone)
    for batch in batches:
        columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in PLACED.names]
        if held:
            columns = [np.concatenate(pair) for pair in zip(held, columns, strict=True)]
        if not len(columns[0]):
            continue
        ids, days = columns[1], bounds.of(columns[3])
        is_first = np.ones(len(ids), np.bool_)
        is_first[1:] = (np.diff(ids) != 0) | (np.diff(days) != 0)
        starts = np.flatnonzero(is_first).tolist()
        for begin, end in pairwise(starts):
            yield _one_day(columns, slice(begin, end), int(days[begin]))
        held = [column[starts[-1] :] for column in columns]
    if held:
        yield _one_day(held, slice(None), int(bounds.of(held[3][:1])[0]))


def _one_day(columns: list[NDArray[Any]], rows: slice, day: int) -> _SeriesDay:
    bucket, ids, metric, times, values, is_incident = (column[rows] for column in columns)
    return _SeriesDay(
        bucket=int(bucket[0]),
        series_id=int(ids[0]),
        metric=int(metric[0]),
        day=date.fromordinal(day),
        times=times,
        values=values,
        is_incident=is_incident,
    )


class _Days:
    """Finds the civil days of times."""

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._first, self._starts = 0, np.zeros(0, np.int64)

    def of(self, at_ms: Int64s) -> Int64s:
        """Return the ordinal of the day of each time."""
        low, high = (_day_near(int(edge)) for edge in (at_ms.min(), at_ms.max()))
        reach = len(self._starts) - 2
        if not (self._first < low.toordinal() and high.toordinal() < self._first + reach):
            self._first = low.toordinal() - 2
            days = range(self._first, high.toordinal() + 4)
            starts = [civil_day(date.fromordinal(day), self._zone).start_ms for day in days]
            self._starts = np.array(starts, np.int64)
        return self._first + np.searchsorted(self._starts, at_ms, side="right") - 1


def _day_near(at_ms: int) -> date:
    return date(1970, 1, 1) + timedelta(days=at_ms // 86_400_000)


class _BucketWriter:
    """Packs the series of a bucket, and writes a file for each day."""

    def __init__(self, order: ImportOrder, bucket: int) -> None:
        self.packed = Packed(bucket=bucket)
        self._place = Place(order.history)
        self._staging, self._zone = order.staging, order.zone
        self._held: dict[date, list[dict[str, object]]] = {}
        self._held_bytes = 0
        self._windows: dict[date, list[dict[str, int]]] = {}
        self._files: dict[date, _PartFile] = {}

    def add(self, part: _SeriesDay) -> None:
        """Take the next series, or the next day of the same one."""
        step = step_of(part.times)
        cells = cells_of(part.times, step, part.day, self._zone)
        first = int(cells[0])
        values = np.full(int(cells[-1]) - first + 1, np.nan, np.float32)
        values[cells - first] = part.values  # of several in one cell the last one counts
        packed = self.packed
        samples = int(np.count_nonzero(~np.isnan(values)))
        packed.samples += samples
        packed.repeated += len(cells) - samples
        packed.steps[str(step)] = packed.steps.get(str(step), 0) + 1
        block = pack(values)
        row: dict[str, object] = {
            SampleColumn.SERIES_ID.value: part.series_id,
            SampleColumn.METRIC.value: METRICS[part.metric].value,
            SampleColumn.START_MS.value: first * step,
            SampleColumn.STEP_MS.value: step,
            SampleColumn.COUNT.value: len(values),
            SampleColumn.VALUES.value: block,
        }
        self._held.setdefault(part.day, []).append(row)
        self._held_bytes += len(block)
        if part.is_incident.any():
            self._add_windows(part, cells[part.is_incident], step)
        if self._held_bytes > HELD_BYTES:
            self._flush()

    def finish(self) -> Packed:
        """Write what is left, and name all files."""
        self._flush()
        for file in self._files.values():
            file.close()
        for day, rows in self._windows.items():
            name = f"{self._staging}/{LABELS}/{DAY}{day.isoformat()}/{self._name}"
            with self._place.writing(name) as stream:
                pq.write_table(pa.Table.from_pylist(rows, schema=MASKS), stream)
        return self.packed

    @property
    def _name(self) -> str:
        return bucket_file(self.packed.bucket)

    def _add_windows(self, part: _SeriesDay, cells: Int64s, step: int) -> None:
        """Add the windows of labelled cells; neighbours are one."""
        cells = np.unique(cells)
        breaks = np.flatnonzero(np.diff(cells) > 1)
        begins, ends = cells[np.r_[0, breaks + 1]], cells[np.r_[breaks, len(cells) - 1]] + 1
        windows = self._windows.setdefault(part.day, [])
        for begin, end in zip((begins * step).tolist(), (ends * step).tolist(), strict=True):
            names = (MaskColumn.SERIES_ID, MaskColumn.START_MS, MaskColumn.END_MS)
            values = (part.series_id, begin, end)
            windows.append({name.value: value for name, value in zip(names, values, strict=True)})
        self.packed.incidents += len(begins)

    def _flush(self) -> None:
        for day, rows in self._held.items():
            if day not in self._files:
                name = f"{self._staging}/{DAYS}/{DAY}{day.isoformat()}/{self._name}"
                self._files[day] = _PartFile(self._place, name)
            self._files[day].write(pa.Table.from_pylist(rows, schema=SAMPLES))
        self._held, self._held_bytes = {}, 0


class _PartFile:
    """A file of one day, written group by group."""

    def __init__(self, place: Place, name: str) -> None:
        self._writing = place.writing(name)
        self._file = pq.ParquetWriter(self._writing.__enter__(), SAMPLES, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        self._file.write_table(rows)

    def close(self) -> None:
        self._file.close()
        self._writing.__exit__(None, None, None)
