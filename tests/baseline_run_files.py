"""Files of nightly runs and dictionaries of series, written as the job and the service write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import LocalFileSystem

from rules.baseline.baseline_run import FORMER_FORMAT, RUN_FORMAT, BaselineRun, BucketRun
from rules.baseline.layout import RUN_FILE, SERIES, bucket_file
from rules.baseline.packed import RunColumn, SeriesColumn, bucket_of
from rules.baseline.series import Series
from service.storage.baselines.run_files import RunPlace
from spark.digests import RowDigest
from spark.schemas import FORMERLY_PUBLISHED, PUBLISHED, RUN

DAY: Final = date(2026, 3, 2)  # a Monday
BUCKETS: Final = 4
DICTIONARY: Final = pa.schema(  # as versions without client ids wrote it
    [
        (SeriesColumn.SERIES_ID.value, pa.int64()),
        (SeriesColumn.CLUSTER.value, pa.string()),
        (SeriesColumn.METRIC.value, pa.string()),
        (SeriesColumn.TOPIC.value, pa.string()),
        (SeriesColumn.PARTITION.value, pa.int32()),
        (SeriesColumn.GROUP.value, pa.string()),
        (SeriesColumn.FIRST_SEEN_MS.value, pa.int64()),
    ]
)


WITH_CLIENTS: Final = DICTIONARY.append(pa.field(SeriesColumn.CLIENT_ID.value, pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What a night says of one series."""

    series: Series
    slots: int = 48
    level: float = 7.0  # of mid at midnight; each slot has one more
    outcome: str = "banded"
    reason: str = "learnt"
    profile: str = "daily"
    changed_at_ms: int | None = None
    slope: float = float("nan")

    def row(self) -> dict[str, Any]:
        """Return its row of a run's file."""
        mid = (self.level + np.arange(self.slots)).astype("<f4")
        return {
            "series_id": self.series.series_id,
            "metric": self.series.metric.value,
            "outcome": self.outcome,
            "reason": self.reason,
            "profile": self.profile,
            "slots": self.slots,
            "mid": mid.tobytes(),
            "upper": (mid + np.float32(4)).tobytes(),
            "lower": (mid - np.float32(4)).tobytes(),
            "threshold": 3.0,
            "threshold_below": 4.5,
            "drift_threshold": 3.5,
            "fall_share": 0.1,
            "threshold_by": "least",
            "delta": 0.5,
            "slope": self.slope,
            "changed_at_ms": self.changed_at_ms,
            "changed_before": 1.0,
            "changed_after": 2.0,
            "days": 21,
            "state": b"",
        }


def write_series(
    history: Path,
    series: Sequence[Series],
    *,
    part: str = "0001",
    schema: pa.Schema = WITH_CLIENTS,
) -> None:
    """Write a part of the dictionary."""
    rows = [
        {
            "series_id": one.series_id,
            "cluster": one.cluster,
            "metric": one.metric.value,
            "topic": one.topic,
            "partition": one.partition,
            "group": one.group,
            "first_seen_ms": 0,
            "client_id": one.client_id,
        }
        for one in series
    ]
    (history / SERIES).mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, history / SERIES / f"{part}.parquet")


def write_run(
    history: Path, usual: Sequence[Usual], *, day: date = DAY, run_id: str = "r1"
) -> RunPlace:
    """Write a run of some series."""
    rows = sorted((one.row() for one in usual), key=lambda row: row["series_id"])
    return write_tables(history, pa.Table.from_pylist(rows, schema=RUN), day=day, run_id=run_id)


def write_tables(
    history: Path, table: pa.Table, *, day: date = DAY, run_id: str = "r1", buckets: int = BUCKETS
) -> RunPlace:
    """Write a run of these rows, which are sorted by series."""
    place = RunPlace(files=LocalFileSystem(), history=str(history), day=day, run_id=run_id)
    folder = Path(place.folder)
    folder.mkdir(parents=True)
    ids: NDArray[np.int64] = table.column(RunColumn.SERIES_ID.value).to_numpy()
    buckets_of = bucket_of(ids, buckets)
    told = [
        _bucket(folder, number, table.take(pa.array(np.flatnonzero(buckets_of == number))))
        for number in range(buckets)
    ]
    run = BaselineRun(
        id=run_id,
        day=day,
        zone="Europe/Berlin",
        previous=None,
        buckets=tuple(told),
        format=RUN_FORMAT if table.column_names == RUN.names else FORMER_FORMAT,
    )
    (folder / RUN_FILE).write_text(run.to_json())
    return place


def _bucket(folder: Path, number: int, rows: pa.Table) -> BucketRun:
    pq.write_table(rows, folder / bucket_file(number), row_group_size=1024, compression="zstd")
    digest = RowDigest(PUBLISHED if rows.column_names == RUN.names else FORMERLY_PUBLISHED)
    digest.add(rows)
    counted = rows.column(RunColumn.OUTCOME.value).value_counts().to_pylist()
    outcomes: Mapping[str, int] = {one["values"]: one["counts"] for one in counted}
    return BucketRun(
        bucket=number,
        rows=rows.num_rows,
        digest=digest.hex(),
        state_digest="",
        outcomes=outcomes,
    )
