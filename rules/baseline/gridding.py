"""Rows of packed samples onto the grid of a civil day: how a `DayBlock` is filled."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import QUARTER_MS, CivilDay

_STEPS: Final = tuple(
    second * 1000
    for second in range(1, QUARTER_MS // 1000 + 1)
    if QUARTER_MS % (second * 1000) == 0
)


def grid_step(step_ms: int) -> int:
    """Return the grid for samples of a step: the next whole seconds that divide a quarter of an hour.

    All rows of a series go onto the grid of the longest step among them; a block has one grid.

    Raises:
        ValueError: the step is not positive, or longer than a quarter of an hour.
    """
    if not 0 < step_ms <= QUARTER_MS:
        raise ValueError(
            f"a step of {step_ms} ms: between 1 ms and a quarter of an hour is possible"
        )
    return next(step for step in _STEPS if step >= step_ms)


def place(
    target: Float32s,
    samples: Float32s,
    *,
    start_ms: int,
    step_ms: int,
    calendar: CivilDay,
) -> None:
    """Write a row of packed samples into a series' day, shape (samples of the day,), NaN before.

    Samples outside the day are left out. Of several in one cell the latest that is known counts.
    """
    grid_ms = (calendar.end_ms - calendar.start_ms) // len(target)
    at_ms = start_ms + step_ms * np.arange(len(samples), dtype=np.int64)
    cells = (at_ms - calendar.start_ms) // grid_ms
    chosen = (at_ms >= calendar.start_ms) & (at_ms < calendar.end_ms) & ~np.isnan(samples)
    target[cells[chosen]] = samples[chosen]


def place_window(
    target: NDArray[np.bool_], *, start_ms: int, end_ms: int, calendar: CivilDay
) -> None:
    """Mark every cell of a series' day that a window [start_ms, end_ms) touches."""
    grid_ms = (calendar.end_ms - calendar.start_ms) // len(target)
    first = max(0, (start_ms - calendar.start_ms) // grid_ms)
    after = min(len(target), -((calendar.start_ms - end_ms) // grid_ms))
    target[first : max(first, after)] = True
