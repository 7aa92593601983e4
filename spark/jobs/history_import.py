"""Packs files of samples for an import: `python -m spark.jobs.history_import ORDER`.

Two passes over the files: a survey that counts what each row is good for, and, unless that is all that was wanted,
the packing into `imports/` below the folder of history. Merging that into the days of history is the caller's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from rules.baseline.blocks import METRIC_CODES
from rules.baseline.layout import SERIES
from rules.baseline.naming import Unnamed, parse_name
from rules.baseline.packed import SeriesColumn, bucket_of
from rules.baseline.series import Series
from spark.history_import.order import ImportOrder
from spark.history_import.packing import Packed
from spark.history_import.reading import read_files
from spark.history_import.reasons import Reason
from spark.history_import.schemas import CATALOGUE
from spark.history_import.transforms import pack_buckets, place_samples, survey
from spark.job import RunFailedError, add_spark_options, run_job, spark_errors
from spark.places import Place
from spark.reporting import progress, report

# Each is held by the driver; a cluster of 10,000 partitions and 31,590 commits has 188,000.
MOST_SERIES: Final = 500_000
# Millions of rows go through the JVM here, where a baseline run hands out a few.
CONF: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Times of Parquet in ns, which Spark has no type for, are read as numbers.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A file that was written by another program has columns of our names in any case.
    "spark.sql.caseSensitive": "true",
}


@dataclass
class Survey:
    """What the files hold."""

    series: dict[str, Series] = field(default_factory=dict)  # by the name in the files
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)  # rows by reason
    examples: dict[str, str] = field(default_factory=dict)

    def reject(self, reason: str, rows: int, example: str) -> None:
        """Count rows that are left out."""
        self.rejected[reason] += rows
        self.examples[reason] = example

    def accept(self, name: str, series: Series, row: Mapping[str, Any]) -> None:
        """Count rows of a series.

        Raises:
            RunFailedError: there are too many.
        """
        metric = self.metrics.setdefault(
            series.metric.value,
            {"series": 0, "rows": 0, "first_ms": row["first_ms"], "last_ms": row["last_ms"]},
        )
        metric["series"] += 1
        metric["rows"] += row["rows"]
        metric["first_ms"] = min(metric["first_ms"], row["first_ms"])
        metric["last_ms"] = max(metric["last_ms"], row["last_ms"])
        self.series[name] = series
        if len(self.series) > MOST_SERIES:
            raise RunFailedError(
                f"the files name more than {MOST_SERIES:,} series: import them in parts, if their names are right"
            )


def survey_of(rows: Iterable[Mapping[str, Any]], cluster: str) -> Survey:
    """Return the survey of the rows of `transforms.survey`.

    Raises:
        RunFailedError: there are too many series.
    """
    found = Survey()
    for row in rows:
        if row["reason"] is not None:
            found.reject(row["reason"], row["rows"], row["example"] or "")
        else:
            found.accept(row["series"], parse_name(row["series"], cluster), row)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Survey the files of an order, and pack them."""
    parser = argparse.ArgumentParser(prog="spark.jobs.history_import", description=__doc__)
    parser.add_argument("order", type=Path, metavar="ORDER")
    add_spark_options(parser)
    options = parser.parse_args(arguments)
    order = ImportOrder.from_json(options.order.read_text(encoding="utf-8"))
    return run_job(
        "tidemark-history-import", options, lambda spark: run(spark.session(), order), CONF
    )


def run(session: SparkSession, order: ImportOrder) -> None:
    """Do it.

    Raises:
        RunFailedError: Spark failed, or there are too many series.
        OSError: the folder of history cannot be written.
    """
    context = session.sparkContext
    checked = read_files(session, order)
    if not order.dry_run:
        checked = checked.persist(StorageLevel.DISK_ONLY)  # text is parsed once
    with spark_errors("reading the files"), progress(context, stage="read"):
        # Not more than decides that there are too many.
        most = MOST_SERIES + len(Reason) + len(Unnamed) + 1
        rows = [row.asDict() for row in survey(checked).limit(most).collect()]
    found = survey_of(rows, order.cluster)
    report(
        "survey",
        series=len(set(found.series.values())),
        metrics=dict(sorted(found.metrics.items())),
        rejected=dict(sorted(found.rejected.items())),
        examples=found.examples,
    )
    if order.dry_run or not found.series:
        return
    _write_dictionary(Place(order.history), order, found)
    catalogue = session.createDataFrame(_catalogue(found, order.buckets), CATALOGUE)
    placed = place_samples(checked, catalogue)
    tasks = min(order.buckets, 4 * context.defaultParallelism)
    with spark_errors("packing the samples"), progress(context, stage="pack"):
        outcomes = pack_buckets(placed, order, tasks).collect()
    packed = [Packed.from_json(row["outcome"]) for row in outcomes]
    report(
        "packed",
        samples=sum(part.samples for part in packed),
        repeated=sum(part.repeated for part in packed),
        incidents=sum(part.incidents for part in packed),
    )


def _catalogue(found: Survey, buckets: int) -> list[tuple[str, int, int, int]]:
    names = list(found.series)
    ids = np.array([found.series[name].series_id for name in names], np.int64)
    codes = [METRIC_CODES[found.series[name].metric] for name in names]
    return list(zip(names, ids.tolist(), codes, bucket_of(ids, buckets).tolist(), strict=True))


def _write_dictionary(place: Place, order: ImportOrder, found: Survey) -> None:
    """Write the labels of the series, which the merging adds to the dictionary of history."""
    every = {series.series_id: series for series in found.series.values()}
    rows = [
        {
            SeriesColumn.SERIES_ID.value: series_id,
            SeriesColumn.METRIC.value: series.metric.value,
            SeriesColumn.TOPIC.value: series.topic,
            SeriesColumn.PARTITION.value: series.partition,
            SeriesColumn.GROUP.value: series.group,
            SeriesColumn.CLIENT_ID.value: series.client_id,
        }
        for series_id, series in every.items()
    ]
    with place.writing(f"{order.staging}/{SERIES}.parquet") as stream:
        pq.write_table(pa.Table.from_pylist(rows), stream)


if __name__ == "__main__":
    sys.exit(main())
