"""The Arrow schemas of history's files, of a run's files, and of the outcome of a task's buckets.

Grains: samples, one row per series, stretch and day; masks, one row per series and window; a run, one
row per series. Columns and units are those of `rules.baseline.packed`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rules.baseline.packed import ADDED_COLUMNS, MaskColumn, RunColumn, SampleColumn

SAMPLES: Final = pa.schema(
    [
        (SampleColumn.SERIES_ID.value, pa.int64()),
        (SampleColumn.METRIC.value, pa.string()),
        (SampleColumn.START_MS.value, pa.int64()),
        (SampleColumn.STEP_MS.value, pa.int32()),
        (SampleColumn.COUNT.value, pa.int32()),
        (SampleColumn.VALUES.value, pa.binary()),
    ]
)
MASKS: Final = pa.schema([(column.value, pa.int64()) for column in MaskColumn])
RUN: Final = pa.schema(
    [
        (RunColumn.SERIES_ID.value, pa.int64()),
        (RunColumn.METRIC.value, pa.string()),
        (RunColumn.OUTCOME.value, pa.string()),
        (RunColumn.REASON.value, pa.string()),
        (RunColumn.PROFILE.value, pa.string()),
        (RunColumn.SLOTS.value, pa.int32()),
        (RunColumn.MID.value, pa.binary()),
        (RunColumn.UPPER.value, pa.binary()),
        (RunColumn.LOWER.value, pa.binary()),
        (RunColumn.THRESHOLD.value, pa.float32()),
        (RunColumn.THRESHOLD_BELOW.value, pa.float32()),
        (RunColumn.DRIFT_THRESHOLD.value, pa.float32()),
        (RunColumn.FALL_SHARE.value, pa.float32()),
        (RunColumn.THRESHOLD_BY.value, pa.string()),
        (RunColumn.DELTA.value, pa.float32()),
        (RunColumn.SLOPE.value, pa.float32()),
        (RunColumn.CHANGED_AT_MS.value, pa.int64()),
        (RunColumn.CHANGED_BEFORE.value, pa.float32()),
        (RunColumn.CHANGED_AFTER.value, pa.float32()),
        (RunColumn.DAYS.value, pa.int32()),
        (RunColumn.STATE.value, pa.binary()),
    ]
)
STATES: Final = pa.schema(
    [RUN.field(name.value) for name in (RunColumn.SERIES_ID, RunColumn.METRIC, RunColumn.STATE)]
)
PUBLISHED: Final = tuple(name for name in RUN.names if name != RunColumn.STATE)  # `digest`
# The same of a run in the format of the version before.
FORMERLY_PUBLISHED: Final = tuple(name for name in PUBLISHED if name not in ADDED_COLUMNS)
REMEMBERED: Final = (RunColumn.SERIES_ID.value, RunColumn.STATE.value)  # `state_digest`

# One row per bucket: a bucket.BucketOutcome as JSON.
OUTCOME_SCHEMA: Final = "bucket int, outcome string"
OUTCOME_ARROW: Final = pa.schema([("bucket", pa.int32()), ("outcome", pa.string())])
