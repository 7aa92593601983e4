"""The runs in a folder of history; one without its record does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow.parquet as pq

from rules.baseline.baseline_run import BaselineRun, BucketRun
from rules.baseline.layout import (
    RUN,
    RUN_FILE,
    RUNS,
    bucket_file,
    day_of_folder,
    run_folder,
    runs_folder,
)
from spark.damage import DamagedError, read_proven
from spark.digests import RowDigest
from spark.places import UNFINISHED, Place
from spark.schemas import PUBLISHED, REMEMBERED


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """One complete run."""

    run: BaselineRun
    made_at: datetime  # aware, UTC: when its record was written


def days_of(place: Place, folder: str) -> list[date]:
    """Return the days of a folder, in order; names without a date are left out."""
    days = (day_of_folder(folder_.name) for folder_ in place.listed(folder) if folder_.is_folder)
    return sorted(day for day in days if day is not None)


def run_of(place: Place, day: date) -> KeptRun | None:
    """Return a day's run; of several, the one whose record was written last.

    Raises:
        OSError: the folder cannot be read.
    """
    runs = []
    for file in place.listed(runs_folder(day)):
        if file.is_folder and file.name.startswith(RUN):
            run = read_run(place, day, file.name.removeprefix(RUN))
            runs += [] if run is None else [run]
    return max(runs, key=lambda stored: (stored.made_at, stored.run.id), default=None)


def read_run(place: Place, day: date, run_id: str) -> KeptRun | None:
    """Return a complete run; None if there is none of this id, or its record is damaged.

    Raises:
        OSError: the record cannot be read now.
    """
    name = f"{run_folder(day, run_id)}/{RUN_FILE}"
    record = place.find(name)
    if record is None:
        return None
    try:
        run = read_proven(place.files, place.path(name), _record)
    except DamagedError:  # torn, or of another format: it is made again
        return None
    return KeptRun(run=run, made_at=record.changed) if run.id == run_id else None


def _record(source: Any) -> BaselineRun:
    return BaselineRun.from_json(source.read().decode())


def is_whole(place: Place, run: BaselineRun) -> bool:
    """Whether all rows of a run are there and match the digests of its record.

    Raises:
        OSError: a file cannot be read now.
    """
    folder = run_folder(run.day, run.id)
    try:
        for bucket in run.buckets:
            path = place.path(f"{folder}/{bucket_file(bucket.bucket)}")
            read_proven(place.files, path, partial(_check_rows, bucket=bucket))
    except (DamagedError, FileNotFoundError):
        return False
    return True


def _check_rows(source: Any, bucket: BucketRun) -> None:
    """Raise a ValueError if the rows of a file are not those of its record."""
    published, states = RowDigest(PUBLISHED), RowDigest(REMEMBERED)
    with pq.ParquetFile(source, page_checksum_verification=True) as opened:
        for group in range(opened.num_row_groups):
            rows = opened.read_row_group(group, columns=[*dict.fromkeys([*PUBLISHED, *REMEMBERED])])
            published.add(rows)
            states.add(rows)
    if (published.hex(), states.hex()) != (bucket.digest, bucket.state_digest):
        raise ValueError("its rows are not those of its record")


def last_run(place: Place, before: date) -> KeptRun | None:
    """Return the run of the last day that has one, before a day."""
    for day in reversed([candidate for candidate in days_of(place, RUNS) if candidate < before]):
        run = run_of(place, day)
        if run is not None:
            return run
    return None


def keep_only(place: Place, run: BaselineRun) -> None:
    """Remove all other files of the run's day: older runs, and unfinished ones."""
    for file in place.listed(runs_folder(run.day)):
        if file.name != f"{RUN}{run.id}":
            remove_run(place, f"{runs_folder(run.day)}/{file.name}")
    folder = run_folder(run.day, run.id)
    for file in place.listed(folder):
        if file.name.startswith(UNFINISHED):
            place.remove(f"{folder}/{file.name}")


def remove_run(place: Place, folder: str) -> None:
    """Remove a run: its record first, so that half of it is never taken for a run."""
    place.remove(f"{folder}/{RUN_FILE}")
    place.remove(folder)


def remove_older(place: Place, days: Sequence[date], keep: int) -> int:
    """Remove the runs of all but the last `keep` days; return how many days were removed."""
    gone = sorted(days)[:-keep]
    for day in gone:
        _remove_day(place, day)
    return len(gone)


def remove_later(place: Place, day: date) -> list[date]:
    """Remove the runs of all days after one; return those days."""
    gone = [later for later in days_of(place, RUNS) if later > day]
    for later in gone:
        _remove_day(place, later)
    return gone


def _remove_day(place: Place, day: date) -> None:
    for file in place.listed(runs_folder(day)):
        remove_run(place, f"{runs_folder(day)}/{file.name}")
    place.remove(runs_folder(day))
