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


class MaskColumn(StrEnum):
    """The columns of windows that must not be learnt from: alerts were open then."""

    SERIES_ID = "series_id"  # int64
    START_MS = "start_ms"  # int64, ms since 1970-01-01 UTC
    END_MS = "end_ms"  # int64, excluded


def pack(values: NDArray[np.floating]) -> bytes:
    """Return samples as bytes; what float32 cannot hold (over 3.4e38) becomes a gap."""
    with np.errstate(over="ignore"):
        packed = values.astype(SAMPLE_TYPE)
    return np.where(np.isfinite(packed), packed, SAMPLE_TYPE.type(np.nan)).tobytes()


def unpack(block: bytes) -> NDArray[np.float32]:
    """Return the samples of a row, read-only.

    Raises:
        ValueError: the block is no whole number of samples.
    """
    return np.frombuffer(block, dtype=SAMPLE_TYPE)


def bucket_of(series_id: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each series; no step of the night crosses buckets."""
    return series_id % buckets
