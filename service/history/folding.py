"""Folding: the hours of a civil day that is over become its day. Idempotent.

An hour's samples replace those of the day. So a crash in between loses nothing, and an hour that arrives
late is added to its day.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from rules.baseline.layout import bucket_file, day_folder
from rules.errors import StoreError
from rules.facts.times import EPOCH
from service.history.blocks import Block, joined, write_blocks
from service.history.days import MILLISECOND, RowGroups, day_bounds, day_of
from service.history.folder import Folder, store_errors
from service.history.hours import HOUR, hour_files
from service.history.merging import BucketRows, in_parts
from service.history.overlaps import without_overlaps

AT_ONCE: Final = 100  # files open: a service that restarts all day leaves thousands


@dataclass(slots=True)
class Folded:
    """The result of folding."""

    days: list[date] = field(default_factory=list)
    hours: int = 0  # files
    bytes: int = 0  # of the days' files
    damaged: dict[str, str] = field(default_factory=dict)  # files that were set aside, and why
    unfinished: dict[date, str] = field(default_factory=dict)  # days whose hours wait, and why

    @property
    def error(self) -> StoreError | None:
        """Return what kept days from being folded, None if nothing did."""
        if not self.unfinished:
            return None
        day, why = min(self.unfinished.items())
        days = f"{len(self.unfinished)} days" if len(self.unfinished) > 1 else "a day"
        return StoreError(f"{days} of history cannot be folded now: {day}: {why}", retryable=True)


@dataclass(frozen=True, slots=True)
class _Hour:
    path: str
    days: tuple[date, ...]  # that it touches, in the folder's time zone


def fold_due(
    folder: Folder,
    *,
    before: date,
    lock: Path,
    is_over: Callable[[], bool] = lambda: False,
) -> Folded:
    """Fold the hours of all civil days before `before`; wait while another process folds.

    If the time is over before the end, the rest is folded the next time. So is a day of which a file cannot
    be read or written now: its hours stay where they are, and the other days are folded.

    Raises:
        StoreError: the folder is away; no sample is lost.
    """
    with alone_folding(lock):
        hours = _hours(folder)
        due = sorted({day for hour in hours for day in hour.days if day < before})
        folded = Folded()
        for day in due:
            if is_over():
                return folded
            mine = [
                hour.path for hour in hours if day in hour.days and hour.path not in folded.damaged
            ]
            try:
                for first in range(0, len(mine), AT_ONCE):
                    if not _fold_day(folder, day, mine[first : first + AT_ONCE], folded, is_over):
                        return folded
            except StoreError as exc:
                folded.unfinished[day] = str(exc)
            else:
                folded.days.append(day)
        for hour in hours:
            is_folded = all(day < before and day not in folded.unfinished for day in hour.days)
            if is_folded and hour.path not in folded.damaged:
                folder.remove(hour.path)
                folded.hours += 1
        _remove_empty(folder, hours)
        return folded


def days_of_hours(folder: Folder) -> list[date]:
    """Return the civil days of hours that are not folded yet, in order.

    Raises:
        StoreError: the folder cannot be listed.
    """
    return sorted({day for hour in _hours(folder) for day in hour.days})


def _hours(folder: Folder) -> list[_Hour]:
    zone = folder.described.time_zone
    hours = []
    for begin, path in hour_files(folder):
        first = day_of((begin - EPOCH) // MILLISECOND, zone)
        last = day_of((begin + HOUR - EPOCH) // MILLISECOND - 1, zone)
        days = (first,) if first == last else (first, last)
        hours.append(_Hour(path, days))
    return hours


def _fold_day(
    folder: Folder,
    day: date,
    hours: Sequence[str],
    folded: Folded,
    is_over: Callable[[], bool],
) -> bool:
    """Fold one day; return whether it was finished."""
    files: list[RowGroups] = []
    try:
        files += (RowGroups(folder, path) for path in hours)
        for bucket in range(folder.buckets):
            if is_over():
                return False
            _fold_bucket(folder, day, bucket, files, folded)
    finally:
        for file in files:
            file.close()
    for file in files:
        for path, why in file.damaged.items():
            folder.set_aside(path)
            folded.damaged[path] = why
    folder.clear_parts(day_folder(day))
    return True


def _fold_bucket(
    folder: Folder, day: date, bucket: int, files: Sequence[RowGroups], folded: Folded
) -> None:
    """Merge the hours of a bucket over the samples that the day has already."""
    span = day_bounds(day, folder.described.time_zone)
    new = [BucketRows(file, bucket, folder.buckets, span) for file in files]
    if not any(map(len, new)):
        return
    path = f"{day_folder(day)}/{bucket_file(bucket)}"
    there = [RowGroups(folder, path)] if folder.size(path) is not None else []
    before = [BucketRows(file, bucket, folder.buckets, span) for file in there]
    parts = join_parts(before, new, span)
    begun = list(islice(parts, 1))

    def fill(stream: Any) -> None:
        write_blocks(stream, _resume(begun, parts))
        for file in there:
            file.close()
            if file.damaged:  # what of it can be read is written anew
                folder.set_aside(path, stays=True)
                folded.damaged.update(file.damaged)

    if begun:
        folder.write(path, fill)
        folded.bytes += folder.size(path) or 0


def join_parts(
    before: Sequence[BucketRows], new: Sequence[BucketRows], span: tuple[int, int]
) -> Iterator[list[Block]]:
    """Yield the rows of a bucket part by part; a part is not held while the next one is made.

    The samples of before give way to new ones of the same time, on whatever grid.
    """
    for part in in_parts([*before, *new]):
        early, late = (
            list(chain.from_iterable(files)) for files in (part[: len(before)], part[len(before) :])
        )
        part.clear()
        whole = joined([*without_overlaps(early, late), *late], span)
        early.clear()
        late.clear()
        yield whole
        del whole


def _resume(begun: list[list[Block]], later: Iterator[list[Block]]) -> Iterator[list[Block]]:
    """Yield the parts taken already, without holding them, and then the rest."""
    while begun:
        yield begun.pop(0)
    yield from later


def _remove_empty(folder: Folder, hours: Sequence[_Hour]) -> None:
    for path in sorted({hour.path.rpartition("/")[0] for hour in hours}):
        if not folder.names(path):
            folder.remove_folder(path)


@contextmanager
def alone_folding(lock: Path) -> Iterator[None]:
    """Hold a lock that ends with the process.

    Raises:
        StoreError: it cannot be taken: its folder is away or read-only.
    """
    with ExitStack() as held:
        with store_errors(str(lock.parent)):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(lock.open("a", encoding="ascii"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
