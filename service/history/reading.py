"""Reads what was measured of one series between two times, wherever it is by now.

Samples move from the write-ahead to the file of an hour and from there to that of a day, and are removed
where they were only afterwards. So they are read in that order: what moves meanwhile is read twice, and
never missed. Nothing is written, locked or set aside here; what cannot be read is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from rules.baseline.layout import bucket_file, day_folder
from rules.errors import StoreError
from rules.facts.times import EPOCH
from service.history.ahead import segment_paths
from service.history.blocks import Block, Int64s, joined
from service.history.days import MILLISECOND, RowGroups, day_of
from service.history.folder import Folder
from service.history.hours import HOUR, hour_at, hour_files, series_block
from service.history.overlaps import without_overlaps
from service.history.segments import hour_of, read_segment
from spark.damage import READ_ERRORS, first_line

MOST_DAYS: Final = 31  # between both times: so many files of days are read at most, and one more
MOST_SAMPLES: Final = 20_000  # of an answer: a megabyte and a half of JSON


class TooManySamplesError(Exception):
    """There are more than `MOST_SAMPLES` between two times."""

    def __init__(self, step_ms: int) -> None:
        """`step_ms`: of the samples that are too many."""
        super().__init__(f"more than {MOST_SAMPLES:,} samples, one in {step_ms / 1000:g} s")
        self.step = step_ms * MILLISECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSamples:
    """The samples of one series between two times, and what of them cannot be read."""

    step: (
        timedelta | None
    )  # of the newest sample's grid, on which gaps are; None: there is no sample
    samples: Sequence[tuple[datetime, float | None]]  # in order of time (UTC); None: a gap
    unreadable: Mapping[str, str]  # files that cannot be read, or not whole, and why


class MeasuredHistory:
    """The samples of a cluster's series; every call opens what it reads, from any thread."""

    def __init__(self, ahead: Path, open_folder: Callable[[], Folder | None]) -> None:
        """`ahead` has the segments; `open_folder` returns None while there is no folder yet."""
        self._ahead = ahead
        self._open = open_folder

    def read(
        self, series_id: int, begin: datetime, end: datetime, *, now: datetime
    ) -> MeasuredSamples:
        """Return what was measured of a series from `begin` on and before `end`, with its gaps.

        A gap is listed before a sample, and when the next round is over as well: one being made is none.

        Raises:
            StoreError: the folder of history is away.
            TooManySamplesError: it is more than fits into an answer.
        """
        span = _ms(begin), _ms(end)
        reading = _Reading(series_id, span)
        ahead = list(reading.ahead(self._ahead))
        folder = self._open()
        hours, days = ([], []) if folder is None else (reading.hours(folder), reading.days(folder))
        shipped = [*without_overlaps(days, hours), *hours]
        blocks = joined([*without_overlaps(shipped, ahead), *ahead])
        newest = max(blocks, key=_last_sample, default=None)
        if newest is None or _last_sample(newest) < 0:
            return MeasuredSamples(step=None, samples=(), unreadable=reading.unreadable)
        settled = max(_ms(now) - 2 * newest.step_ms, _last_sample(newest)) + 1
        samples = _samples(newest, blocks, (span[0], min(span[1], settled)))
        return MeasuredSamples(
            step=newest.step_ms * MILLISECOND, samples=samples, unreadable=reading.unreadable
        )


class _Reading:
    """Reads the rows of one series, cut to the time; in `unreadable` is what cannot be read, and why."""

    def __init__(self, series_id: int, span_ms: tuple[int, int]) -> None:
        self.unreadable: dict[str, str] = {}
        self._series_id = series_id
        self._span_ms = span_ms

    def ahead(self, ahead: Path) -> Iterator[Block]:
        """Yield the samples of segments, the newest last; its end may be being written right now."""
        try:
            paths = segment_paths(ahead)
        except OSError as exc:
            self.unreadable[ahead.name] = first_line(exc)
            return
        for path in paths:
            name = f"{ahead.name}/{path.name}"
            try:
                with path.open("rb") as file:
                    block = self._of_segment(file, name, is_last=path == paths[-1])
            except FileNotFoundError:
                continue  # shipped since the list was made, and read with the hours
            except READ_ERRORS as exc:
                self.unreadable[name] = first_line(exc)
                continue
            if block is not None:
                yield block

    def hours(self, folder: Folder) -> list[Block]:
        """Return the samples of hours that are not folded yet; StoreError if the folder is away."""
        files = hour_files(folder, self._touches_hour)
        return [block for _, path in files for block in self._rows(folder, path)]

    def days(self, folder: Folder) -> list[Block]:
        """Return the samples of folded days; StoreError if the folder is away."""
        zone = folder.described.time_zone
        begin, end = (day_of(at, zone) for at in (self._span_ms[0], self._span_ms[1] - 1))
        name = bucket_file(self._series_id % folder.buckets)
        blocks: list[Block] = []
        for days in range((end - begin).days + 1):
            path = f"{day_folder(begin + timedelta(days=days))}/{name}"
            if folder.size(path) is not None:
                blocks += self._rows(folder, path)
            _require_few(sum(_count(block) for block in blocks), blocks)
        return blocks

    def _of_segment(self, file: BinaryIO, name: str, *, is_last: bool) -> Block | None:
        hour = hour_of(file)
        if hour is not None and not self._touches_hour(hour_at(hour)):
            return None
        segment = read_segment(file, with_labels=False)
        lost = segment.lost_bytes - (segment.tail_bytes if is_last else 0)
        if lost or segment.lost_rounds:
            self.unreadable[name] = f"{lost:,} bytes and {segment.lost_rounds:,} rounds are lost"
        return series_block(segment, self._series_id, self._span_ms)

    def _touches_hour(self, begin: datetime) -> bool:
        """Return whether an hour may have samples: the first one's place may be before it begins."""
        begin_ms, hour_ms = _ms(begin), HOUR // MILLISECOND
        return self._span_ms[0] - hour_ms < begin_ms < self._span_ms[1] + hour_ms

    def _rows(self, folder: Folder, path: str) -> list[Block]:
        try:
            return self._rows_of(RowGroups(folder, path), folder.buckets)
        except StoreError as exc:
            if folder.size(path) is not None:  # or it was folded since, and is read with the days
                self.unreadable[path] = str(exc)
            return []

    def _rows_of(self, file: RowGroups, buckets: int) -> list[Block]:
        groups = file.groups_of(self._series_id % buckets, buckets)
        try:
            rows = [
                block.take(block.series_id == self._series_id).between(*self._span_ms)
                for group in groups
                if self._may_have(file.bounds(group))
                for block in file.blocks(group)
            ]
        finally:
            file.close()
        self.unreadable.update(file.damaged)
        return [block for block in rows if len(block) and block.samples]

    def _may_have(self, bounds: tuple[int, int] | None) -> bool:
        return bounds is None or bounds[0] <= self._series_id <= bounds[1]


def _samples(
    newest: Block, blocks: Sequence[Block], gaps_ms: tuple[int, int]
) -> list[tuple[datetime, float | None]]:
    """Return the samples of all grids, with gaps on the newest one wherever no grid has a sample.

    Args:
        newest: the block of the newest sample, one of `blocks`.
        blocks: of one series, one for each step.
        gaps_ms: begin and end (excluded) of the time in which gaps are listed.
    """
    count = sum(map(_count, blocks))
    places = _free_places(newest, [block for block in blocks if block is not newest], gaps_ms)
    is_known = np.isin(places, _times(newest))
    _require_few(count + int(np.count_nonzero(~is_known)), [newest])
    samples: dict[int, float | None] = dict.fromkeys(places[~is_known].tolist())
    for block in (*(block for block in blocks if block is not newest), newest):
        values = block.values[0]
        # By its text a float32 gets no digits that it never had: 0.1, not 0.10000000149.
        texts = map(str, values[~np.isnan(values)])
        samples |= zip(_times(block).tolist(), map(float, texts), strict=True)
    return [(EPOCH + at * MILLISECOND, value) for at, value in sorted(samples.items())]


def _free_places(newest: Block, others: Sequence[Block], span_ms: tuple[int, int]) -> Int64s:
    """Return the places of the newest grid in a time where no other grid has a sample, in ms."""
    step = newest.step_ms
    first = -(-span_ms[0] // step) * step
    count = max(-(-(span_ms[1] - first) // step), 0)
    whole = Block(
        series_id=newest.series_id,
        metric=newest.metric,
        start_ms=first,
        step_ms=step,
        values=np.zeros((1, count), np.float32),
    )
    (free,) = without_overlaps([whole], others)
    return _times(free)


def _times(block: Block) -> Int64s:
    """Return when the samples of a block of one row were taken, in ms."""
    times: Int64s = block.start_ms + block.step_ms * np.flatnonzero(~np.isnan(block.values[0]))
    return times


def _count(block: Block) -> int:
    return int(np.count_nonzero(~np.isnan(block.values)))


def _last_sample(block: Block) -> int:
    """Return the time of the last sample in ms, -1 if all are gaps."""
    return int(_times(block).max(initial=-1))


def _require_few(count: int, blocks: Sequence[Block]) -> None:
    if count > MOST_SAMPLES:
        raise TooManySamplesError(min(block.step_ms for block in blocks))


def _ms(at: datetime) -> int:
    """Return a time in ms since 1970-01-01 UTC, rounded down."""
    return (at - EPOCH) // MILLISECOND
