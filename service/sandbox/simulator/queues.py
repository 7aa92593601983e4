"""A queue per row: what is waiting, and since when. One column per sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]


def waiting(arrivals: Floats, capacity: Floats, before: Floats) -> Floats:
    """Return what waits after each step: what came and could not be read yet, never less than 0.

    All are records; `before` is what waited at first, one per row. (Lindley's recursion, as a sum.)
    """
    total = np.cumsum(arrivals - capacity, axis=1)
    lowest = np.minimum.accumulate(total, axis=1)
    left: Floats = total + np.maximum(before[:, None], -lowest)
    return left


def seconds_behind(ends: Offsets, times_ms: Offsets, committed: Offsets) -> Floats:
    """Return for how long the next record to read has been there, at the last samples of a row.

    Args:
        ends: the end of the log at each time, never falling; one partition.
        times_ms: the time of each; as many.
        committed: the next offset to read, at the last times; at most as many.

    Returns:
        Seconds, 0 where nothing is to be read. A record is taken to have come at an even pace
        between the two samples around it.
    """
    at = np.searchsorted(ends, committed, side="right")
    now = times_ms[len(times_ms) - len(committed) :]
    is_there = at < len(ends)
    after = np.clip(at, 1, len(ends) - 1)
    came, step = ends[after] - ends[after - 1], times_ms[after] - times_ms[after - 1]
    part = np.clip((committed - ends[after - 1]) / np.maximum(came, 1), 0, 1)
    since = times_ms[after - 1] + part * step
    behind: Floats = np.where(is_there, np.maximum(now - since, 0) / 1000, 0.0)
    return behind
