"""A baseline run as a DataFrame of buckets: each task makes its buckets' files, with one row per outcome.

Nothing is shuffled and no series crosses buckets; what comes out depends neither on the number of
tasks nor on their order. Tasks read and write by themselves: docs/decisions/0004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]  # not in its stubs
from pyspark.util import PythonEvalType

from spark.bucket import make_bucket
from spark.inputs import RunInputs
from spark.schemas import OUTCOME_ARROW, OUTCOME_SCHEMA

Batches: TypeAlias = Iterator[pa.RecordBatch]


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


def map_in_arrow(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: str
) -> DataFrame:
    """Return what the function makes of each partition's batches, as `DataFrame.mapInArrow` does.

    PySpark 4.3 makes the function of `mapInArrow` by `pandas_udf`, which fails without pandas although
    neither side of Arrow's batches ever uses it (`arrow_udf` has no such check). This is that method
    without the check; pandas would be 60 MB for a line that reads its version.
    """
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    udf = vectorized_udf(function, returnType=schema, functionType=kind)
    column = udf(*[frame[name] for name in frame.columns])
    mapped = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001 - as PySpark's own
    return DataFrame(mapped, frame.sparkSession)
