"""Puts packed rows on the grid of a civil day, as the core of a baseline run takes them.

Series with the same step go together; where a series has several rows the grid is that of its
coarsest, and the last sample that was measured in a cell counts. A step that does not divide a
quarter of an hour is taken for the next longer one that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rules.baseline.blocks import METRICS, DayBlock
from rules.baseline.civil import CivilDay
from rules.baseline.grid import Int64s, put_row, whole_step
from rules.baseline.packed import SAMPLE_TYPE, MaskColumn, RunColumn, SampleColumn
from rules.baseline.state import StateBlock, is_state_size
from spark.damage import DamagedError
from spark.reading import BrokenRunError, Step

SILENT_STEP_MS: Final = 30_000  # of series without a sample
BLOCK_SERIES: Final = 256
BLOCK_SAMPLES: Final = BLOCK_SERIES * 2880  # a day at 30 s; with shorter steps fewer series
METRIC_NAMES: Final = pa.array([each_metric.value for each_metric in METRICS])


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """Windows of a bucket that are not learnt from, sorted by series."""

    series_id: Int64s
    start_ms: Int64s
    end_ms: Int64s

    @classmethod
    def of(cls, rows: pa.Table) -> Masks:
        """Take the rows of a file."""
        columns = (MaskColumn.SERIES_ID, MaskColumn.START_MS, MaskColumn.END_MS)
        ids, begins, ends = (rows.column(column.value).to_numpy() for column in columns)
        order = np.argsort(ids, kind="stable")
        return cls(ids[order], begins[order], ends[order])


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Series that are advanced together; `place` is where they are among those of their step."""

    place: Int64s
    states: StateBlock
    day: DayBlock


def blocks(step: Step, calendar: CivilDay, masks: Masks) -> Iterator[Block]:
    """Yield the series of a step in blocks, each with its states; every series once.

    Raises:
        DamagedError: a row or a state cannot be what it should be.
    """
    rows = _Rows.of(step.samples)
    states, held = _states(step)
    metric = _metrics(step, rows, held)
    of_series = np.searchsorted(step.series_id, rows.series_id)
    grid = np.full(len(step.series_id), 0, np.int64)
    np.maximum.at(grid, of_series, rows.step_ms)
    grid[grid == 0] = SILENT_STEP_MS
    for width in np.unique(grid).tolist():
        step_ms = whole_step(width)
        chosen = np.flatnonzero(grid == width)
        most = max(1, min(BLOCK_SERIES, BLOCK_SAMPLES // calendar.samples(step_ms)))
        for first in range(0, len(chosen), most):
            place = chosen[first : first + most]
            ids = step.series_id[place]
            values = _values(rows, of_series, place, calendar, step_ms)
            day = DayBlock(
                series_id=ids,
                metric=metric[place],
                step_ms=step_ms,
                values=values,
                masked=_mask(masks, ids, calendar, step_ms),
            )
            yield Block(place, states.take(held[place]), day)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Columns of samples."""

    series_id: Int64s
    metric: NDArray[np.uint8]
    start_ms: Int64s
    step_ms: Int64s
    samples: Int64s  # each row's number of them
    first: Int64s  # where in `values` a row begins
    values: NDArray[np.float32]  # of all rows, one after another

    @classmethod
    def of(cls, samples: pa.Table) -> _Rows:
        plain = {name: samples.column(name) for name in SampleColumn}
        counts = plain[SampleColumn.COUNT].to_numpy().astype(np.int64)
        offsets, data = _binary(plain[SampleColumn.VALUES])
        steps = plain[SampleColumn.STEP_MS].to_numpy().astype(np.int64)
        if (np.diff(offsets) != counts * SAMPLE_TYPE.itemsize).any() or (steps <= 0).any():
            raise DamagedError("samples: a row's length or step cannot be right")
        return cls(
            series_id=plain[SampleColumn.SERIES_ID].to_numpy(),
            metric=_codes(plain[SampleColumn.METRIC]),
            start_ms=plain[SampleColumn.START_MS].to_numpy(),
            step_ms=steps,
            samples=counts,
            first=(offsets[:-1] - offsets[0]) // SAMPLE_TYPE.itemsize,
            values=np.frombuffer(data, SAMPLE_TYPE),
        )


def _values(
    rows: _Rows, of_series: Int64s, place: Int64s, calendar: CivilDay, step_ms: int
) -> NDArray[np.float32]:
    width = calendar.samples(step_ms)
    begin, end = np.searchsorted(of_series, [place[0], place[-1] + 1]).tolist()
    chosen = np.arange(begin, end)
    to = np.searchsorted(place, of_series[begin:end]).clip(max=len(place) - 1)
    chosen, to = (positions[place[to] == of_series[begin:end]] for positions in (chosen, to))
    if len(to) == len(place) and _are_whole_days(rows, chosen, to, calendar, step_ms):
        begin = int(rows.first[chosen[0]])
        return rows.values[begin : begin + len(place) * width].reshape(len(place), width)
    grid = np.full((len(place), width), np.nan, np.float32)
    for row, into in zip(chosen.tolist(), to.tolist(), strict=True):
        first, count = int(rows.first[row]), int(rows.samples[row])
        taken = rows.values[first : first + count]
        since_ms = int(rows.start_ms[row]) - calendar.start_ms
        put_row(grid[into], taken, since_ms, int(rows.step_ms[row]), step_ms)
    return grid


def _are_whole_days(
    rows: _Rows, chosen: Int64s, to: Int64s, calendar: CivilDay, step_ms: int
) -> bool:
    """Whether these rows, in this order, are the grid already, as on most days."""
    return (
        np.array_equal(to, np.arange(len(to)))
        and np.array_equal(chosen, chosen[0] + np.arange(len(to)))
        and bool((rows.samples[chosen] == calendar.samples(step_ms)).all())
        and bool((rows.step_ms[chosen] == step_ms).all())
        and bool((rows.start_ms[chosen] == calendar.start_ms).all())
    )


def _mask(masks: Masks, ids: Int64s, calendar: CivilDay, step_ms: int) -> NDArray[np.bool_] | None:
    first = np.searchsorted(masks.series_id, ids)
    last = np.searchsorted(masks.series_id, ids, side="right")
    if not (last > first).any():
        return None
    masked = np.zeros((len(ids), calendar.samples(step_ms)), np.bool_)
    for row in np.flatnonzero(last > first).tolist():
        for window in range(first[row], last[row]):
            begin = (int(masks.start_ms[window]) - calendar.start_ms) // step_ms
            end = -((calendar.start_ms - int(masks.end_ms[window])) // step_ms)
            masked[row, max(0, begin) : max(0, end)] = True
    return masked


def _states(step: Step) -> tuple[StateBlock, Int64s]:
    """Return the states, and for every series the place of its own; -1: it has none."""
    ids = step.states.column(RunColumn.SERIES_ID.value).to_numpy()
    offsets, data = _binary(step.states.column(RunColumn.STATE.value))
    sizes = np.unique(np.diff(offsets)).tolist()
    is_whole = len(sizes) <= 1 and all(is_state_size(size) for size in sizes)
    if not is_whole or (np.diff(ids) == 0).any():
        raise BrokenRunError("states: one has another length, or a series has two")
    try:
        states = StateBlock.from_buffer(data)
    except ValueError as exc:
        raise BrokenRunError(f"states: {exc}") from exc
    held = np.full(len(step.series_id), -1, np.int64)
    held[np.searchsorted(step.series_id, ids)] = np.arange(len(ids))
    return states, held


def _metrics(step: Step, rows: _Rows, held: Int64s) -> NDArray[np.uint8]:
    metric = np.zeros(len(step.series_id), np.uint8)
    codes = _codes(step.states.column(RunColumn.METRIC.value))
    metric[held >= 0] = codes[held[held >= 0]]
    metric[np.searchsorted(step.series_id, rows.series_id)] = rows.metric
    return metric


def _codes(names: pa.ChunkedArray) -> NDArray[np.uint8]:
    codes = pc.index_in(names, METRIC_NAMES)
    if codes.null_count:
        raise DamagedError("a metric is not known here")
    plain: NDArray[np.uint8] = codes.to_numpy().astype(np.uint8)
    return plain


def _binary(column: pa.ChunkedArray) -> tuple[Int64s, memoryview]:
    """Return where each value of a column of one chunk begins, and its bytes."""
    if not len(column):
        return np.zeros(1, np.int64), memoryview(b"")
    (values,) = column.chunks
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    begins: Int64s = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = values.buffers()[2]
    whole = memoryview(b"") if data is None else memoryview(data)
    return begins, whole[int(begins[0]) : int(begins[-1])]
