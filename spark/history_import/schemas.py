"""The columns of an import, declared once: of what is read, in between, and of what tasks return.

Grains: `LONG`, one row per series and time, as it came; `CHECKED`, the same row, read; `SURVEY`, one row per series,
or reason without a series; `CATALOGUE`, one row per series that is imported; `PLACED`, one row per sample.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import types as t

SERIES, TIME, VALUE, LABEL = "series", "time", "value", "label"
NEEDED: Final = (SERIES, TIME, VALUE)
LONG: Final = (*NEEDED, LABEL)
EXAMPLE_CHARACTERS: Final = 160

CHECKED: Final = t.StructType(
    [
        t.StructField(SERIES, t.StringType()),
        t.StructField("at_ms", t.LongType()),
        t.StructField(VALUE, t.DoubleType()),
        t.StructField("is_incident", t.BooleanType()),
        t.StructField("reason", t.StringType()),  # null: it can be imported
        t.StructField("example", t.StringType()),  # of a row with a reason
    ]
)
SURVEY: Final = (
    "series string, reason string, rows bigint, first_ms bigint, last_ms bigint, example string"
)
SURVEY_ARROW: Final = pa.schema(
    [
        (SERIES, pa.string()),
        ("reason", pa.string()),
        ("rows", pa.int64()),
        ("first_ms", pa.int64()),
        ("last_ms", pa.int64()),
        ("example", pa.string()),
    ]
)
CATALOGUE: Final = t.StructType(
    [
        t.StructField(SERIES, t.StringType(), nullable=False),
        t.StructField("series_id", t.LongType(), nullable=False),
        t.StructField("metric", t.ByteType(), nullable=False),  # a place in `blocks.METRICS`
        t.StructField("bucket", t.IntegerType(), nullable=False),
    ]
)
PLACED: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("series_id", pa.int64()),
        ("metric", pa.int8()),
        ("at_ms", pa.int64()),
        (VALUE, pa.float64()),
        ("is_incident", pa.bool_()),
    ]
)
# One row per bucket: a packing.Packed as JSON.
OUTCOME: Final = "bucket int, outcome string"
OUTCOME_ARROW: Final = pa.schema([("bucket", pa.int32()), ("outcome", pa.string())])
