"""Hours of history: the rounds of a segment as one packed file, until its day is folded.

A segment is ordered by round, and the file by series. So the rounds are read several times, each time for
as many series as may be held at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.layout import HOURS, hour_folder
from rules.baseline.packed import ROW_GROUP_ROWS, SAMPLE_TYPE, bucket_of
from rules.facts.times import EPOCH
from service.history.ahead import HOUR_MS
from service.history.blocks import Block, Codes, Int64s, write_parts
from service.history.folder import Folder
from service.history.segments import Segment

HOUR: Final = timedelta(hours=1)
PREFIX: Final = "hour="
SUFFIX: Final = ".parquet"
# Samples held at once. Measured with 188,000 series and 240 rounds: each pass over the rounds takes half a
# second, of five in all.
PART_BYTES: Final = 64 * 2**20


def hour_at(hour: int) -> datetime:
    """Return when an hour begins; `hour`: hours since 1970-01-01 UTC."""
    return EPOCH + hour * HOUR


def hour_files(
    folder: Folder, is_due: Callable[[datetime], bool] = lambda _: True
) -> Iterator[tuple[datetime, str]]:
    """Yield the files of hours that are not folded, in order, with the hour's beginning.

    Only the folders of hours that are due by their beginning are listed.

    Raises:
        StoreError: the folder cannot be listed.
    """
    for name in folder.names(HOURS):
        begin = _hour(name)
        if begin is None or not is_due(begin):
            continue
        for part in folder.names(f"{HOURS}/{name}"):
            if part.endswith(SUFFIX):
                yield begin, f"{HOURS}/{name}/{part}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedHour:
    """The samples of a segment, to be written part by part."""

    segment: Segment
    start_ms: int
    samples: int  # per series
    ids: Int64s  # of its series, in order of (bucket, id)
    metric: Codes

    def parts(self, most_bytes: int = PART_BYTES) -> Iterator[Block]:
        """Yield the rows in order, as many at once as `most_bytes` of samples.

        Of two rounds in one cell of the grid, samples of the later one win.

        Raises:
            OSError: the segment cannot be read any more.
        """
        most = max(most_bytes // (self.samples * SAMPLE_TYPE.itemsize), ROW_GROUP_ROWS)
        for low in range(0, len(self.ids), most):
            rows = slice(low, low + most)
            yield Block(
                series_id=self.ids[rows],
                metric=self.metric[rows],
                start_ms=self.start_ms,
                step_ms=self.segment.step_ms,
                values=self._values(self.ids[rows]).T,  # copied when it is written
            )

    def _values(self, ids: Int64s) -> NDArray[np.float32]:
        """Return the samples of some series, shape (samples, series)."""
        step = self.segment.step_ms
        values = np.full((self.samples, len(ids)), np.nan, np.float32)
        for index, rounds in groupby(self.segment.rounds, lambda round_: round_.index):
            mine, theirs = _same(ids, index.ids)
            for round_ in rounds:
                row, new = values[(round_.at_ms - self.start_ms) // step], round_.values[theirs]
                row[mine] = np.where(np.isnan(new), row[mine], new)
        return values


def packed_hour(
    segment: Segment, *, buckets: int, left_out: Collection[int] = ()
) -> PackedHour | None:
    """Return the rounds of a segment, to be written; None if it holds no sample.

    Series that are `left_out` have no row.

    Raises:
        OSError: the segment cannot be read any more.
    """
    step = segment.step_ms
    if step <= 0 or all(np.isnan(round_.values).all() for round_ in segment.rounds):
        return None
    slots = [round_.at_ms // step for round_ in segment.rounds]
    ids, metric = _all_series(segment)
    order = np.lexsort((ids, bucket_of(ids, buckets)))
    if left_out:
        order = order[~np.isin(ids[order], list(left_out))]
    return PackedHour(
        segment=segment,
        start_ms=min(slots) * step,
        samples=max(slots) - min(slots) + 1,
        ids=ids[order],
        metric=metric[order],
    )


def series_block(segment: Segment, series_id: int, span_ms: tuple[int, int]) -> Block | None:
    """Return the samples of one series of a segment between two times; None if it has no place there.

    Args:
        segment: only its rounds in the span are read.
        series_id: of the series.
        span_ms: begin and end (excluded) of the samples' places on the grid.

    Raises:
        OSError: the segment cannot be read any more.
    """
    step = segment.step_ms
    if step <= 0:
        return None
    begin, end = span_ms
    rounds = [round_ for round_ in segment.rounds if begin <= round_.at_ms // step * step < end]
    ids = np.array([series_id], np.int64)
    metric = _metric_of(segment, series_id)
    if not rounds or metric is None:
        return None
    slots = [round_.at_ms // step for round_ in rounds]
    packed = PackedHour(
        segment=replace(segment, rounds=rounds),
        start_ms=min(slots) * step,
        samples=max(slots) - min(slots) + 1,
        ids=ids,
        metric=metric,
    )
    return next(packed.parts())


def write_hour(folder: Folder, packed: PackedHour, checksum: int) -> str:
    """Write the file of a segment; written twice, it is the same file. Return its path.

    `checksum`: of the segment.

    Raises:
        StoreError: the folder cannot be written, or the segment cannot be read any more.
    """
    hour = packed.segment.rounds[0].at_ms // HOUR_MS
    name = f"part-{packed.start_ms:014d}-{checksum:08x}.parquet"
    path = f"{hour_folder(hour_at(hour))}/{name}"
    folder.write(path, lambda stream: write_parts(stream, packed.parts(), folder.buckets))
    return path


def _hour(name: str) -> datetime | None:
    try:
        return datetime.strptime(name, f"{PREFIX}%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return None


def _metric_of(segment: Segment, series_id: int) -> Codes | None:
    """Return the metric of a series in a segment, None if it has none there."""
    for index in dict.fromkeys(round_.index for round_ in segment.rounds):
        is_series = index.ids == series_id
        if is_series.any():
            metric: Codes = index.metric[is_series]
            return metric
    return None


def _all_series(segment: Segment) -> tuple[Int64s, Codes]:
    """Return all series of a segment, each once."""
    ids: Int64s = np.zeros(0, np.int64)
    metric: Codes = np.zeros(0, np.uint8)
    for index in dict.fromkeys(round_.index for round_ in segment.rounds):
        both = np.concatenate([ids, index.ids])
        ids, place = np.unique(both, return_index=True)
        metric = np.concatenate([metric, index.metric])[place]
    return ids, metric


def _same(ids: Int64s, there: Int64s) -> tuple[Int64s | slice, Int64s]:
    """Return the places, in both arrays, of the series that both have."""
    if not len(there):
        nothing: Int64s = np.zeros(0, np.int64)
        return nothing, nothing
    order = np.argsort(there)
    places = order[np.searchsorted(there, ids, sorter=order).clip(max=len(there) - 1)]
    is_there = there[places] == ids
    if is_there.all():
        return slice(None), places
    return np.flatnonzero(is_there), places[is_there]
