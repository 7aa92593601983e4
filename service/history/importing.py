"""Merges the days of an import into history: what is there already stays, and what is new is added.

Every file is replaced at once, and merging twice is the same as once: what was interrupted is imported again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from rules.baseline.layout import DAY, DAYS, LABELS, SERIES, bucket_file, day_folder, day_of_folder
from rules.baseline.packed import SeriesColumn
from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.history.blocks import Block, write_blocks
from service.history.days import RowGroups, day_bounds
from service.history.dictionary import Dictionary
from service.history.folder import Folder
from service.history.folding import join_parts
from service.history.labels import Windows, add_windows, windows_of
from service.history.merging import BucketRows
from spark.damage import DamagedError

LABEL_COLUMNS: Final = (
    SeriesColumn.SERIES_ID,
    SeriesColumn.METRIC,
    SeriesColumn.TOPIC,
    SeriesColumn.PARTITION,
    SeriesColumn.GROUP,
    SeriesColumn.CLIENT_ID,
)


@dataclass(slots=True)
class Merged:
    """What an import has added."""

    days: list[date] = field(default_factory=list)  # to which something was added
    samples: int = 0
    kept: int = 0  # samples of the import that gave way to those that were there
    incidents: int = 0  # windows
    collided: int = 0  # series that are left out, because another one has their id


def merge(folder: Folder, staging: str, progress: Callable[[date, int, int], None]) -> Merged:
    """Merge what an import has packed in `staging`, a folder below that of history.

    `progress` is called with a day, and with the numbers of days that are merged and of all.

    Raises:
        StoreError: the folder is away, or a file of it is damaged, which is named; what was merged stays.
    """
    merging = _Merging(folder, staging)
    merged = merging.merged
    days = _days(folder, f"{staging}/{DAYS}")
    merging.add_series(days)
    for done, day in enumerate(days, 1):
        added = sum(merging.merge_bucket(day, bucket) for bucket in range(folder.buckets))
        merged.samples += added
        merged.days += [day] if added else []
        progress(day, done, len(days))
    for day in _days(folder, f"{staging}/{LABELS}"):
        merged.incidents += add_windows(folder, day, merging.windows(day))
    return merged


def _days(folder: Folder, path: str) -> list[date]:
    return sorted(day for day in map(day_of_folder, folder.names(path)) if day is not None)


class _Merging:
    def __init__(self, folder: Folder, staging: str) -> None:
        self.merged = Merged()
        self._folder, self._staging = folder, staging
        self._left_out: list[int] = []  # ids that other series have

    def add_series(self, days: Sequence[date]) -> None:
        """Add the labels of the import's series to the dictionary."""
        described = self._folder.described
        rows = self._read(f"{self._staging}/{SERIES}.parquet", pq.read_table)
        # What an earlier version packed has no client ids.
        present = set(rows.column_names)
        columns = (
            rows.column(name.value).to_pylist() if name.value in present else [None] * len(rows)
            for name in LABEL_COLUMNS
        )
        series = {
            series_id: Series(
                cluster=described.cluster,
                metric=Metric(metric),
                topic=topic,
                partition=partition,
                group=group,
                client_id=client_id,
            )
            for series_id, metric, topic, partition, group, client_id in zip(*columns, strict=True)
        }
        first_ms = day_bounds(days[0], described.time_zone)[0] if days else 0
        self._left_out = list(Dictionary(self._folder).add(series, max(first_ms, 0)).collisions)
        self.merged.collided = len(self._left_out)

    def merge_bucket(self, day: date, bucket: int) -> int:
        """Add the samples of a bucket that are new, and return how many they are."""
        folder, path = self._folder, f"{day_folder(day)}/{bucket_file(bucket)}"
        new = f"{self._staging}/{path}"
        if folder.size(new) is None:
            return 0
        span = day_bounds(day, folder.described.time_zone)
        there = [path] if folder.size(path) is not None else []
        files = [RowGroups(folder, name) for name in [new, *there]]

        def rows(place: int, *, without: Sequence[int] = ()) -> BucketRows:
            return BucketRows(files[place], bucket, folder.buckets, span, without=without)

        try:
            # What is imported gives way to what is there; of that nothing is ever left out.
            recorded = [rows(1)] if there else []
            joining = join_parts([rows(0, without=self._left_out)], recorded, span)
            parts = [[block.reported() for block in part] for part in joining]
            before = rows(1).count_samples() if there else 0
            offered = rows(0, without=self._left_out).count_samples()
            self._check(files)
        finally:
            for each in files:
                each.close()
        added = sum(_known(block) for part in parts for block in part) - before
        self.merged.kept += offered - added
        if added > 0:
            folder.write(path, lambda stream: write_blocks(stream, parts))
        return added

    def windows(self, day: date) -> Windows:
        """Return the labelled windows of a day."""
        path = f"{self._staging}/{LABELS}/{DAY}{day.isoformat()}"
        names = [f"{path}/{name}" for name in self._folder.names(path)]
        windows = np.concatenate([self._read(name, windows_of) for name in names])
        return windows[~np.isin(windows[:, 0], self._left_out)]

    def _check(self, files: Sequence[RowGroups]) -> None:
        """Leave a damaged file as it is: to save what of it can be read is folding's."""
        for file in files:
            for path, why in file.damaged.items():
                raise StoreError(
                    f"history at {self._folder.url}: {path} is damaged: {why}", retryable=False
                )

    def _read(self, path: str, read: Callable[[Any], Any]) -> Any:
        try:
            return self._folder.read(path, read)
        except DamagedError as exc:
            message = f"history at {self._folder.url}: {path} is damaged: {exc}"
            raise StoreError(message, retryable=False) from exc


def _known(block: Block) -> int:
    return int(np.count_nonzero(~np.isnan(block.values)))
