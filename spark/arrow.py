"""`DataFrame.mapInArrow` where there is no pandas.

PySpark 4.3 makes the function of `mapInArrow` by `pandas_udf`, which fails without pandas although
neither side of Arrow's batches ever uses it (`arrow_udf` has no such check). What follows is that method
without the check; pandas would be 60 MB for a line that reads its version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]  # not in its stubs
from pyspark.util import PythonEvalType

Batches: TypeAlias = Iterator[pa.RecordBatch]


def map_in_arrow(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: str
) -> DataFrame:
    """Return what the function makes of each partition's batches, as `DataFrame.mapInArrow` does."""
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    udf = vectorized_udf(function, returnType=schema, functionType=kind)
    column = udf(*[frame[name] for name in frame.columns])
    mapped = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001 - as PySpark's own
    return DataFrame(mapped, frame.sparkSession)
