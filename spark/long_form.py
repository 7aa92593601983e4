"""Packed history in long form, for queries of one's own: one row per series and sample.

It reads Parquet by `spark.read`, so that Spark prunes days and columns. Nothing of Tidemark calls it;
docs/backtest.md shows how to use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from rules.baseline.layout import DAYS, SERIES
from rules.baseline.packed import SampleColumn, SeriesColumn, unpack
from spark.transforms import map_in_arrow

PACKED: Final = (
    "series_id long, metric string, start_ms long, step_ms int, n int, v binary, day date"
)
DICTIONARY: Final = (
    "series_id long, cluster string, topic string, partition int, `group` string, client_id string"
)
LONG: Final = "series_id long, metric string, day date, time timestamp, value float"
LONG_ARROW: Final = pa.schema(
    [
        ("series_id", pa.int64()),
        ("metric", pa.string()),
        ("day", pa.date32()),
        ("time", pa.timestamp("us", "UTC")),
        ("value", pa.float32()),
    ]
)
COLUMNS: Final = (
    *("cluster", "metric", "topic", "partition", "group", "client_id"),
    *("day", "time", "value"),
)


def read_samples(session: SparkSession, history: str, first: date, last: date) -> DataFrame:
    """Return one row per series and sample of some civil days, without gaps.

    Columns: `cluster`, `metric`, `topic`, `partition`, `group`, `client_id` (the last four may be null), `day` (civil,
    in the zone of history), `time` (timestamp, when the sample's interval began) and `value` (float, in the metric's unit).

    Args:
        session: any.
        history: the folder, as Spark takes it: a path, or an address such as s3a://bucket/folder.
        first: the first day.
        last: the last day, included.
    """
    days = session.read.schema(PACKED).parquet(f"{history}/{DAYS}")
    packed = days.where(f.col("day").between(f.lit(first), f.lit(last)))
    samples = map_in_arrow(packed, _unpack_batches, LONG)
    labels = session.read.schema(DICTIONARY).parquet(f"{history}/{SERIES}")
    each = labels.dropDuplicates([SeriesColumn.SERIES_ID.value])
    joined = samples.join(f.broadcast(each), on=SeriesColumn.SERIES_ID.value, how="left")
    return joined.select(*COLUMNS)


def _unpack_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            values = unpack(row[SampleColumn.VALUES])
            (known,) = np.nonzero(~np.isnan(values))
            at_ms = row[SampleColumn.START_MS] + known * row[SampleColumn.STEP_MS]
            columns = (
                pa.array(np.full(len(known), row[SampleColumn.SERIES_ID], np.int64)),
                pa.array([row[SampleColumn.METRIC]] * len(known), pa.string()),
                pa.array([row["day"]] * len(known), pa.date32()),
                pa.array(at_ms * 1000, pa.int64()).cast(pa.timestamp("us", "UTC")),
                pa.array(values[known]),
            )
            yield pa.RecordBatch.from_arrays(list(columns), schema=LONG_ARROW)
