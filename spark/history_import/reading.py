"""From files to checked rows: every row keeps its place, with what it says or why it cannot be used."""

from __future__ import annotations

import re
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spark.history_import.order import CSV, ImportOrder, InputFile
from spark.history_import.reasons import Reason
from spark.history_import.schemas import (
    CHECKED,
    EXAMPLE_CHARACTERS,
    LABEL,
    LONG,
    SERIES,
    TIME,
    VALUE,
)

# A number is a time since 1970-01-01 UTC; its size shows the unit, as all of them are of this century.
UNITS: Final = ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6))  # below, ms in one
EARLIEST: Final = 1e8  # seconds: 1973; a smaller number is none of a time
NUMBER: Final = r"^\s*\d+(\.\d*)?([eE]\+?\d+)?\s*$"
ISO: Final = r"^\s*\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"
ZONED: Final = r"([zZ]|UTC|[+-]\d{2}:?\d{2}|[+-]\d{2})\s*$"
NO_NUMBER: Final = r"(?i)^\s*([+-]?(nan|inf|infinity)|null|none|na|n/a|-)?\s*$"
NO_INCIDENT: Final = ("", "0", "0.0", "false", "no", "none", "normal", "null", "nan")
MOST_VALUE: Final = 3.4028234e38  # that history can hold


def read_files(session: SparkSession, order: ImportOrder) -> DataFrame:
    """Return the checked rows of all files."""
    frames = [check_rows(_read(session, file), order) for file in order.files]
    return reduce(DataFrame.unionByName, frames)


def literal_path(path: str) -> str:
    """Return a path as Spark has to get it, which takes it for a pattern."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", path)


def _read(session: SparkSession, file: InputFile) -> DataFrame:
    """Return the long form of a file; a column that it does not have is null."""
    path = literal_path(file.path)
    if file.format == CSV:
        schema = t.StructType([t.StructField(name, t.StringType()) for name in file.columns])
        frame = session.read.csv(
            path, schema, header=True, enforceSchema=True, escape='"', mode="PERMISSIVE"
        )
    else:
        frame = session.read.parquet(path)
    columns = [
        f.col(f"`{name}`") if name in frame.columns else f.lit(None).cast("string").alias(name)
        for name in LONG
    ]
    return frame.select(*columns)


def check_rows(frame: DataFrame, order: ImportOrder) -> DataFrame:
    """Return `CHECKED` of the long form; columns of any type that can hold a time or a number."""
    at_ms, has_zone = _times(frame.schema[TIME].dataType, order.times_zone)
    text = f.col(VALUE).cast("string")
    value = f.expr(f"try_cast({VALUE} AS double)")
    label = f.lower(f.trim(f.col(LABEL).cast("string")))
    read = frame.select(
        f.col(SERIES).cast("string").alias(SERIES),
        at_ms.alias("at_ms"),
        value.alias("number"),
        f.coalesce(~label.isin(*NO_INCIDENT), f.lit(col=False)).alias("is_incident"),
        has_zone.alias("has_zone"),
        text.alias("text"),
        f.col(TIME).cast("string").alias(TIME),
    )
    example = f.substring(f.concat_ws(", ", SERIES, TIME, "text"), 1, EXAMPLE_CHARACTERS)
    checked = read.withColumn("reason", _reason(order))
    return checked.select(
        SERIES,
        "at_ms",
        f.col("number").alias(VALUE),
        "is_incident",
        "reason",
        f.when(f.col("reason").isNotNull(), example).alias("example"),
    ).to(CHECKED)


def _reason(order: ImportOrder) -> Column:
    number, at_ms = f.col("number"), f.col("at_ms")
    # Most rows have a number: only for others the text is searched.
    has_none = number.isNull() & f.coalesce(f.col("text").rlike(NO_NUMBER), f.lit(col=True))
    is_gap = has_none | f.isnan(number) | (f.abs(number) == float("inf"))
    return (
        f.when(at_ms.isNull() & f.col("has_zone"), Reason.TIME.value)
        .when(at_ms.isNull(), Reason.ZONE.value)
        .when(at_ms < order.not_before_ms, Reason.OLD.value)
        .when(at_ms >= order.not_after_ms, Reason.FUTURE.value)
        .when(is_gap, Reason.NO_VALUE.value)
        .when(number.isNull() | (f.abs(number) > MOST_VALUE), Reason.VALUE.value)
        .when(number < 0, Reason.NEGATIVE.value)
    )


def _times(kind: t.DataType, zone: str | None) -> tuple[Column, Column]:
    """Return ms since 1970-01-01 UTC, null where there are none, and whether a time has a zone."""
    always, column = f.lit(col=True), f.col(TIME)
    if isinstance(kind, t.TimestampType):
        return _ms(column), always
    if isinstance(kind, t.TimestampNTZType):
        return _in_zone(column, zone), f.lit(col=zone is not None)
    if isinstance(kind, t.NumericType):
        return _of_number(column.cast("double")), always
    text = column.cast("string")
    number = _of_number(f.expr(f"try_cast({TIME} AS double)"))
    is_time, has_zone = text.rlike(ISO), text.rlike(ZONED)
    with_zone = _ms(f.expr(f"try_cast({TIME} AS timestamp)"))
    without = _in_zone(f.expr(f"try_cast({TIME} AS timestamp_ntz)"), zone)
    at_ms = (
        f.when(text.rlike(NUMBER), number)
        .when(is_time & has_zone, with_zone)
        .when(is_time, without)
    )
    lacks_zone = is_time & ~has_zone & f.lit(col=zone is None)
    return at_ms, ~f.coalesce(lacks_zone, f.lit(col=False))


def _ms(timestamp: Column) -> Column:
    return f.unix_millis(timestamp)


def _in_zone(civil: Column, zone: str | None) -> Column:
    if zone is None:
        return f.lit(None).cast("long")
    # The session is in UTC: cast so, the civil time is a time that is as far off as the zone.
    return _ms(f.to_utc_timestamp(civil.cast("timestamp"), zone))


def _of_number(number: Column) -> Column:
    ms = f.when(number < EARLIEST, f.lit(None))
    for below, each in UNITS:
        ms = ms.when(number < below, number * each)
    return f.round(ms).cast("long")
