"""Days of history: writes a civil day as a whole, one file per bucket, reads and removes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq

from rules.baseline.layout import DAYS, LABELS, MASKS, bucket_file, day_folder, day_of_folder
from rules.baseline.packed import bucket_of
from rules.facts.times import EPOCH
from service.history.blocks import Block, blocks_of, write_blocks
from service.history.folder import Folder
from spark.damage import READ_ERRORS, DamagedError

MILLISECOND: Final = timedelta(milliseconds=1)

T = TypeVar("T")


def day_bounds(day: date, time_zone: str) -> tuple[int, int]:
    """Return begin and end (excluded) of a civil day, in ms since 1970-01-01 UTC."""
    zone = ZoneInfo(time_zone)
    begin, end = (
        datetime.combine(date_, time(), tzinfo=zone).astimezone(UTC)
        for date_ in (day, day + timedelta(days=1))
    )
    return (begin - EPOCH) // MILLISECOND, (end - EPOCH) // MILLISECOND


def day_of(timestamp_ms: int, time_zone: str) -> date:
    """Return the civil day of a time."""
    return (EPOCH + timestamp_ms * MILLISECOND).astimezone(ZoneInfo(time_zone)).date()


def write_day(folder: Folder, day: date, blocks: Sequence[Block]) -> int:
    """Write a civil day as a whole, in place of its earlier files; return the bytes written.

    The samples are the day's: no block begins or ends outside it. Each file is replaced at once, and
    a bucket without rows has none.

    Raises:
        StoreError: the folder cannot be written; buckets that were replaced stay replaced.
    """
    written = 0
    for bucket in range(folder.buckets):
        mine = [
            block.take(bucket_of(block.series_id, folder.buckets) == bucket) for block in blocks
        ]
        written += write_bucket(folder, day, bucket, mine)
    folder.clear_parts(day_folder(day))
    return written


def write_bucket(folder: Folder, day: date, bucket: int, blocks: Sequence[Block]) -> int:
    """Write the rows of one bucket of a day, in place of its earlier file; return the bytes written.

    Raises:
        StoreError: the folder cannot be written; the earlier file stays.
    """
    path = f"{day_folder(day)}/{bucket_file(bucket)}"
    if not any(len(block) and block.samples for block in blocks):
        folder.remove(path)
        return 0
    folder.write(path, lambda stream: write_blocks(stream, [blocks]))
    return folder.size(path) or 0


def days_of(folder: Folder) -> list[date]:
    """Return the days that have samples, in order.

    Raises:
        StoreError: the folder cannot be listed.
    """
    return sorted(day for day in map(day_of_folder, folder.names(DAYS)) if day is not None)


def remove_old(folder: Folder, first: date, is_over: Callable[[], bool]) -> int:
    """Remove the days before `first` with their masks and labels; return how many had samples.

    Baseline runs are not removed here: the next one continues the last one.

    Raises:
        StoreError: the folder is away.
    """
    removed = 0
    for kind in (MASKS, LABELS, DAYS):
        for name in folder.names(kind):
            day = day_of_folder(name)
            if day is not None and day < first and not is_over():
                folder.remove_folder(f"{kind}/{name}")
                removed += kind == DAYS
    return removed


class DayReader:
    """Reads a day, a row group at a time, without the rows of damaged files.

    `damaged` holds the files that are damaged, as far as they were read, and why.
    """

    def __init__(self, folder: Folder, day: date) -> None:
        self._folder = folder
        self.day = day
        self.damaged: dict[str, str] = {}

    def buckets(self) -> list[int]:
        """Return which buckets have a file.

        Raises:
            StoreError: the folder cannot be listed.
        """
        names = set(self._folder.names(day_folder(self.day)))
        return [bucket for bucket in range(self._folder.buckets) if bucket_file(bucket) in names]

    def blocks(self, bucket: int) -> Iterator[Block]:
        """Yield the rows of a bucket in order; none if there is no file.

        Raises:
            StoreError: the folder cannot be read.
        """
        path = f"{day_folder(self.day)}/{bucket_file(bucket)}"
        if self._folder.size(path) is None:
            return
        file = RowGroups(self._folder, path)
        for group in range(len(file)):
            yield from file.blocks(group)
        self.damaged.update(file.damaged)


class RowGroups:
    """The row groups of a Parquet file of samples; of a damaged file, those that are not.

    A row group is left out only if damage is proven; a file that cannot be read now is a StoreError.
    """

    def __init__(self, folder: Folder, path: str) -> None:
        """Open the file; StoreError if it cannot be read now."""
        self.path = path
        self.damaged: dict[str, str] = {}
        self._folder = folder
        self._file: Any = None
        self._metadata: Any = self._read(lambda file: file.metadata)

    def __len__(self) -> int:
        return 0 if self._metadata is None else int(self._metadata.num_row_groups)

    def groups_of(self, bucket: int, buckets: int) -> list[int]:
        """Return the row groups of a bucket, in a file with separate row groups per bucket."""
        groups = []
        for group in range(len(self)):
            bounds = self.bounds(group)
            if bounds is None or bounds[0] % buckets == bucket:
                groups.append(group)
        return groups

    def bounds(self, group: int) -> tuple[int, int] | None:
        """Return the least and the greatest series of a row group, None without statistics."""
        statistics = self._metadata.row_group(group).column(0).statistics
        return (
            None
            if statistics is None or not statistics.has_min_max
            else (statistics.min, statistics.max)
        )

    def blocks(self, group: int) -> list[Block]:
        """Return the rows of a row group; none if it is damaged.

        Raises:
            StoreError: it cannot be read now.
        """
        rows = self._read(lambda file: blocks_of(file.read_row_group(group, use_threads=False)))
        return rows or []

    def close(self) -> None:
        """Close it, until the next read."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, read: Callable[[Any], T]) -> T | None:
        """Return what is read of the file; None if that is damaged."""
        with suppress(*READ_ERRORS):
            if self._file is None:
                self._file = _parquet(self._folder.files.open_input_file(self.path))
            return read(self._file)
        self.close()
        try:
            return self._folder.read(self.path, lambda source: read(_parquet(source)))
        except DamagedError as exc:
            self.damaged[self.path] = str(exc)
            return None


def _parquet(source: Any) -> Any:
    return pq.ParquetFile(
        source, page_checksum_verification=True, pre_buffer=False, memory_map=False
    )
