"""The grid of a civil day: in which of its steps a sample lies, for the baseline run and for live scoring.

History puts a round at the beginning of its polling interval, counted from 1970-01-01 UTC. A day's grid has a
step that divides a quarter of an hour; of several samples in one step the last that was measured counts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import QUARTER_MS

Int64s = NDArray[np.int64]


@lru_cache(maxsize=64)
def whole_step(step_ms: int) -> int:
    """Return the least step, not shorter than this one, that divides a quarter of an hour."""
    longer = range(min(step_ms, QUARTER_MS), QUARTER_MS + 1)
    return next(step for step in longer if QUARTER_MS % step == 0)


def history_ms(at_ms: int, interval_ms: int) -> int:
    """Return where history puts a round that began at `at_ms`: ms since 1970-01-01 UTC."""
    return at_ms // interval_ms * interval_ms


def put_row(
    grid: Float32s, taken: Float32s, since_ms: int, step_ms: int, grid_step_ms: int
) -> None:
    """Put the samples of one series on its grid of a day, (samples of the day,); NaN puts nothing.

    `since_ms`: from midnight to the first sample; samples of other days are left out.
    """
    if step_ms == grid_step_ms and since_ms == 0 and len(taken) == len(grid):
        np.copyto(grid, taken, where=~np.isnan(taken))
        return
    cells = (since_ms + np.arange(len(taken), dtype=np.int64) * step_ms) // grid_step_ms
    is_kept = (cells >= 0) & (cells < len(grid)) & ~np.isnan(taken)
    grid[cells[is_kept]] = taken[is_kept]  # of several in one cell the last stays
