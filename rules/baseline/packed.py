"""How history is packed: the one place that knows the columns and the encoding of samples.

`service.history` writes it and `spark` reads it. A row holds the samples of one series over a stretch of
time, on a grid: sample i was taken in [start + i * step, start + (i + 1) * step). A series may have
several rows in a day (its step changed, it appeared again); they are sorted by (series_id, start_ms).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

FORMAT: Final = 1  # of the folder; another number is another encoding
SAMPLE_TYPE: Final = np.dtype("<f4")  # a gap is NaN
ROW_GROUP_ROWS: Final = 1024  # at most: a reader takes one group of rows at a time


class SampleColumn(StrEnum):
    """The columns of packed samples, in their order; none is ever null."""

    SERIES_ID = "series_id"  # int64
    METRIC = "metric"  # string, a `Metric`
    START_MS = "start_ms"  # int64, ms since 1970-01-01 UTC, a multiple of step_ms
    STEP_MS = "step_ms"  # int32
    COUNT = "n"  # int32, samples
    VALUES = "v"  # binary, n times SAMPLE_TYPE


class SeriesColumn(StrEnum):
    """The columns of the dictionary of series, in their order."""

    SERIES_ID = "series_id"  # int64
    CLUSTER = "cluster"  # string, the configured name
    METRIC = "metric"  # string, a `Metric`
    TOPIC = "topic"  # string or null
    PARTITION = "partition"  # int32 or null
    GROUP = "group"  # string or null: the consumer group
    FIRST_SEEN_MS = "first_seen_ms"  # int64, ms since 1970-01-01 UTC
    CLIENT_ID = "client_id"  # string or null; parts that an earlier version wrote do not have it


class RunColumn(StrEnum):
    """The columns of a baseline run, in their order: one row per series, sorted by series_id.

    Where a series has no band, `slots` is 0, the three blocks are empty and `profile` is "none".
    A float32 that is not known is NaN; only what is marked so may be null.
    """

    SERIES_ID = "series_id"  # int64
    METRIC = "metric"  # string, a `Metric`
    OUTCOME = "outcome"  # string, a `blocks.Outcome`
    REASON = "reason"  # string, a `blocks.Reason`
    PROFILE = "profile"  # string, a `blocks.Profile`
    SLOTS = "slots"  # int32: 0, 48 (of a civil day) or 336 (of a week, Monday 00:00 first)
    MID = "mid"  # binary, slots times float32: what is expected at the middle of the slot
    UPPER = "upper"  # the same: the upper edge of what is usual (score 1), not cut to the range
    LOWER = "lower"  # the same: the lower edge
    THRESHOLD = "threshold"  # float32: the band is mid + threshold * (upper - mid)
    THRESHOLD_BELOW = "threshold_below"  # float32: the same of the lower side
    DRIFT_THRESHOLD = "drift_threshold"  # float32: the same of slow changes, on the policy's side
    FALL_SHARE = "fall_share"  # float32: less than this share of `mid` is reported; 0: nothing
    THRESHOLD_BY = "threshold_by"  # string, a `blocks.ThresholdBy`; of the greater of both sides
    DELTA = "delta"  # float32, the level correction, contained in mid
    SLOPE = "slope"  # float32, of the metric's unit per day
    CHANGED_AT_MS = "changed_at_ms"  # int64 or null: ms since 1970-01-01 UTC, of a new level
    CHANGED_BEFORE = "changed_before"  # float32, the level before it
    CHANGED_AFTER = "changed_after"  # float32
    DAYS = "days"  # int32, days with data among the last 35
    STATE = "state"  # binary, `state.STATE_BYTES` long


# Columns that runs of the former format do not have.
ADDED_COLUMNS: Final = (
    RunColumn.THRESHOLD_BELOW,
    RunColumn.DRIFT_THRESHOLD,
    RunColumn.FALL_SHARE,
)


class MaskColumn(StrEnum):
    """The columns of windows that must not be learnt from: alerts were open then."""

    SERIES_ID = "series_id"  # int64
    START_MS = "start_ms"  # int64, ms since 1970-01-01 UTC
    END_MS = "end_ms"  # int64, excluded


def packable(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return samples as they are packed; what float32 cannot hold (over 3.4e38) becomes a gap."""
    with np.errstate(over="ignore"):
        packed = values.astype(SAMPLE_TYPE)
    packed[~np.isfinite(packed)] = np.nan
    return packed


def pack(values: NDArray[np.floating]) -> bytes:
    """Return samples as bytes; what float32 cannot hold (over 3.4e38) becomes a gap."""
    return packable(values).tobytes()


def unpack(block: bytes) -> NDArray[np.float32]:
    """Return the samples of a row, read-only.

    Raises:
        ValueError: the block is no whole number of samples.
    """
    return np.frombuffer(block, dtype=SAMPLE_TYPE)


def bucket_of(series_id: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each series; no step of a run crosses buckets."""
    return series_id % buckets
