"""A backtest as DataFrames: buckets and settings in, what would have opened out."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark.backtest.bucket import replay_bucket
from spark.backtest.order import BacktestOrder
from spark.transforms import Batches, map_in_arrow

# One row per bucket and setting: a `spark.backtest.bucket.ReplayedBucket` as JSON.
REPLAYED_SCHEMA: Final = "bucket int, setting int, replayed string"
REPLAYED_ARROW: Final = pa.schema(
    [("bucket", pa.int32()), ("setting", pa.int32()), ("replayed", pa.string())]
)


def buckets_and_settings(session: SparkSession, order: BacktestOrder) -> DataFrame:
    """Return one row per bucket and setting, `bucket` int and `setting` int, each in a task of its own."""
    count = order.buckets * len(order.settings)
    return session.range(0, count, 1, count).selectExpr(
        f"CAST(id % {order.buckets} AS int) AS bucket",
        f"CAST(id DIV {order.buckets} AS int) AS setting",
    )


def replay_buckets(every: DataFrame, order: BacktestOrder) -> DataFrame:
    """Return `REPLAYED_SCHEMA`: the replay of each row of `buckets_and_settings`."""

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                replayed = replay_bucket(order, row["bucket"], row["setting"]).to_json()
                yield pa.RecordBatch.from_pylist(
                    [{**row, "replayed": replayed}], schema=REPLAYED_ARROW
                )

    return map_in_arrow(every, task, REPLAYED_SCHEMA)
