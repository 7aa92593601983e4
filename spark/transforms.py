"""A baseline run as a DataFrame of buckets: each task makes its buckets' files, with one row per outcome.

Nothing is shuffled and no series crosses buckets; what comes out depends neither on the number of
tasks nor on their order. Tasks read and write by themselves: docs/decisions/0004.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark.arrow import Batches, map_in_arrow
from spark.bucket import make_bucket
from spark.inputs import RunInputs
from spark.schemas import OUTCOME_ARROW, OUTCOME_SCHEMA


def buckets(session: SparkSession, count: int, tasks: int) -> DataFrame:
    """Return one row per bucket, `bucket` int, spread over tasks."""
    return session.range(0, count, 1, min(tasks, count)).selectExpr("CAST(id AS int) AS bucket")


def make_buckets(every: DataFrame, inputs: RunInputs) -> DataFrame:
    """Return one row per bucket: `bucket` int and `outcome` string, a `spark.bucket.BucketOutcome`.

    Collecting the rows makes the files.
    """

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for bucket in batch.column("bucket").to_pylist():
                outcome = make_bucket(inputs, bucket).to_json()
                yield pa.RecordBatch.from_pylist(
                    [{"bucket": bucket, "outcome": outcome}], schema=OUTCOME_ARROW
                )

    return map_in_arrow(every, task, OUTCOME_SCHEMA)
