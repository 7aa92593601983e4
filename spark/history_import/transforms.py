"""What a survey of an import counts, and where each sample goes: DataFrame to DataFrame."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark.history_import.names import check_names
from spark.history_import.order import ImportOrder
from spark.history_import.packing import pack_bucket_rows
from spark.history_import.schemas import OUTCOME, PLACED, SERIES, SURVEY
from spark.transforms import map_in_arrow


def survey(checked: DataFrame) -> DataFrame:
    """Return one row per series and one per reason: `rows`, `first_ms`, `last_ms`, and the least `example`.

    A reason has no series: a file in which all names are wrong has as many names as rows, and what a survey
    returns has to fit into the driver.
    """
    each = checked.select(
        SERIES,
        "reason",
        f.lit(1).cast("long").alias("rows"),
        f.col("at_ms").alias("first_ms"),
        f.col("at_ms").alias("last_ms"),
        "example",
    )
    return _counted(map_in_arrow(_counted(each), check_names, SURVEY))


def _counted(rows: DataFrame) -> DataFrame:
    series = f.when(f.col("reason").isNull(), f.col(SERIES)).alias(SERIES)
    return rows.groupBy(series, "reason").agg(
        f.sum("rows").alias("rows"),
        f.min("first_ms").alias("first_ms"),
        f.max("last_ms").alias("last_ms"),
        f.min("example").alias("example"),
    )


def place_samples(checked: DataFrame, catalogue: DataFrame) -> DataFrame:
    """Return `PLACED`: the samples of the series of a catalogue."""
    usable = checked.where(f.col("reason").isNull())
    return usable.join(f.broadcast(catalogue), on=SERIES, how="inner").select(*PLACED.names)


def pack_buckets(placed: DataFrame, order: ImportOrder, tasks: int) -> DataFrame:
    """Return one row per bucket, `bucket` int and `outcome` string; collecting them writes the days.

    Of several samples at one time the greatest counts, whatever the order of files and rows.
    """
    by_series = placed.repartition(tasks, "bucket").sortWithinPartitions(
        "bucket", "series_id", "at_ms", "value"
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack_bucket_rows(order, batches)

    return map_in_arrow(by_series, task, OUTCOME)
