"""The files of one nightly run: its record, and its rows a group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from rules.baseline.baseline_run import BaselineRun, BucketRun
from rules.baseline.layout import RUN_FILE, bucket_file, run_folder
from rules.errors import StoreError
from spark.digests import RowDigest
from spark.schemas import PUBLISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Where a run is."""

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
        StoreError: there is none, it is torn, or it is another run's.
    """
    path = f"{place.folder}/{RUN_FILE}"
    try:
        with place.files.open_input_stream(path) as record:
            run = BaselineRun.from_json(record.read().decode())
    except (OSError, ValueError) as exc:
        raise rejected(place, f"{RUN_FILE} cannot be read: {exc}") from exc
    if (run.id, run.day) != (place.run_id, place.day):
        raise rejected(place, f"{RUN_FILE} is of run {run.id} of {run.day}")
    return run


def row_groups(place: RunPlace, run: BaselineRun) -> Iterator[pa.RecordBatch]:
    """Give the rows of all buckets, some at a time; the end is reached only if all fit the record.

    Raises:
        StoreError: a file is missing or torn, or its rows are not those of the record.
    """
    for bucket in run.buckets:
        try:
            yield from _rows_of(place, bucket)
        except (OSError, pa.ArrowException, KeyError) as exc:
            told = str(exc).strip().partition("\n")[0]
            raise rejected(place, f"{bucket_file(bucket.bucket)} cannot be read: {told}") from exc


def _rows_of(place: RunPlace, bucket: BucketRun) -> Iterator[pa.RecordBatch]:
    if not bucket.rows:
        return
    name, digest = bucket_file(bucket.bucket), RowDigest(PUBLISHED)
    with (
        place.files.open_input_file(f"{place.folder}/{name}") as source,
        pq.ParquetFile(source) as opened,
    ):
        for group in range(opened.num_row_groups):
            for batch in opened.read_row_group(group, columns=list(PUBLISHED)).to_batches():
                digest.add(batch)
                yield batch
    if digest.rows != bucket.rows:
        raise rejected(place, f"{name} has {digest.rows} rows, and its record says {bucket.rows}")
    if digest.hex() != bucket.digest:
        raise rejected(place, f"the rows of {name} are not those of its record")


def rejected(place: RunPlace, why: str) -> StoreError:
    """Return why a run is not published; no other try will change it."""
    return StoreError(f"run {place.run_id} of {place.day} is not published: {why}", retryable=False)
