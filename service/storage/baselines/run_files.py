"""The files of one nightly run: its record, and its rows, one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from rules.baseline.baseline_run import RUN_FORMAT, BaselineRun, BucketRun
from rules.baseline.layout import RUN_FILE, bucket_file, run_folder
from rules.errors import StoreError
from spark.damage import READ_ERRORS, DamagedError, first_line, read_proven
from spark.digests import RowDigest
from spark.schemas import FORMERLY_PUBLISHED, PUBLISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Location of a run."""

    files: FileSystem
    history: str  # the folder of history in it
    day: date
    run_id: str

    @property
    def folder(self) -> str:
        """Return the run's own folder."""
        return f"{self.history.rstrip('/')}/{run_folder(self.day, self.run_id)}"


def read_record(place: RunPlace) -> BaselineRun:
    """Return the record of a run.

    Raises:
        StoreError: it is missing, damaged, or another run's; or it cannot be read now, which is retryable.
    """
    with read_errors(place, RUN_FILE):
        run = read_proven(place.files, f"{place.folder}/{RUN_FILE}", _record)
    if (run.id, run.day) != (place.run_id, place.day):
        raise rejection_of(place, f"{RUN_FILE} is of run {run.id} of {run.day}")
    return run


def row_groups(place: RunPlace, run: BaselineRun) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all buckets in batches; completes only if all match the record.

    Raises:
        StoreError: a file is missing or damaged, or its rows are not those of the record; or it cannot be
            read now, which is retryable.
    """
    columns = PUBLISHED if run.format == RUN_FORMAT else FORMERLY_PUBLISHED
    for bucket in run.buckets:
        name = bucket_file(bucket.bucket)
        with read_errors(place, name):
            try:
                yield from _rows_of(place, bucket, columns)
            except READ_ERRORS:
                # Rows that were yielded are not taken back: whether a retry helps is all that is left to say.
                read = partial(_read_through, columns=columns)
                read_proven(place.files, f"{place.folder}/{name}", read)
                raise


def _rows_of(
    place: RunPlace, bucket: BucketRun, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    if not bucket.rows:
        return
    name, digest = bucket_file(bucket.bucket), RowDigest(columns)
    with (
        place.files.open_input_file(f"{place.folder}/{name}") as source,
        pq.ParquetFile(source) as opened,
    ):
        for group in range(opened.num_row_groups):
            for batch in opened.read_row_group(group, columns=list(columns)).to_batches():
                digest.add(batch)
                yield batch
    if digest.rows != bucket.rows:
        raise rejection_of(
            place, f"{name} has {digest.rows} rows, and its record says {bucket.rows}"
        )
    if digest.hex() != bucket.digest:
        raise rejection_of(place, f"the rows of {name} are not those of its record")


def _record(source: Any) -> BaselineRun:
    return BaselineRun.from_json(source.read().decode())


def _read_through(source: Any, columns: tuple[str, ...]) -> None:
    """Read all rows of these columns; raises one of `READ_ERRORS` if that is not possible."""
    with pq.ParquetFile(source) as opened:
        for group in range(opened.num_row_groups):
            opened.read_row_group(group, columns=list(columns)).select(list(columns))


@contextmanager
def read_errors(place: RunPlace, what: str) -> Iterator[None]:
    """Translate what `read_proven` raises.

    Raises:
        StoreError: the file is missing or damaged; or it cannot be read now, which is retryable.
    """
    try:
        yield
    except (DamagedError, FileNotFoundError) as exc:
        raise rejection_of(place, f"{what} cannot be read: {first_line(exc)}") from exc
    except READ_ERRORS as exc:
        message = (
            f"run {place.run_id} of {place.day} is not published yet: {what}: {first_line(exc)}"
        )
        raise StoreError(message, retryable=True) from exc


def rejection_of(place: RunPlace, why: str) -> StoreError:
    """Return the error of a run that cannot be published; a retry will not help."""
    return StoreError(f"run {place.run_id} of {place.day} is not published: {why}", retryable=False)
