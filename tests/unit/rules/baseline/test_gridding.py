"""Rows of packed samples onto the grid of a day."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.gridding import grid_step, place, place_window
from tests.unit.rules.baseline.days import day_of

DAY = day_of(0)
NAN = float("nan")


def filled(start: int, step_ms: int, samples: list[float], grid_ms: int = 60_000) -> list[float]:
    """Return the first four cells after a row was placed that begins so many ms after midnight."""
    target = np.full(DAY.samples(grid_ms), np.nan, np.float32)
    row = np.array(samples, np.float32)
    place(target, row, start_ms=DAY.start_ms + start, step_ms=step_ms, calendar=DAY)
    assert np.isnan(target[4:]).all()
    return [float(value) for value in target[:4]]


@pytest.mark.parametrize(
    ("start", "step_ms", "samples", "cells"),
    [
        (0, 60_000, [1, 2], [1, 2, NAN, NAN]),
        (60_000, 60_000, [1, NAN, 3], [NAN, 1, NAN, 3]),
        (-60_000, 60_000, [9, 1], [1, NAN, NAN, NAN]),  # the day before is left out
        (0, 30_000, [1, 2, 3, NAN], [2, 3, NAN, NAN]),  # the latest that is known
        (0, 120_000, [1, 2], [1, NAN, 2, NAN]),
    ],
)
def test_samples_go_to_their_cells(
    start: int, step_ms: int, samples: list[float], cells: list[float]
) -> None:
    np.testing.assert_array_equal(filled(start, step_ms, samples), cells)


def test_what_comes_after_the_day_is_left_out() -> None:
    target = np.full(DAY.samples(60_000), np.nan, np.float32)
    row = np.arange(3, dtype=np.float32)
    place(target, row, start_ms=DAY.end_ms - 60_000, step_ms=60_000, calendar=DAY)
    assert target[-1] == 0
    assert np.isnan(target[:-1]).all()


@pytest.mark.parametrize(
    ("start", "end", "cells"),
    [
        (0, 60_000, [0]),
        (30_000, 60_001, [0, 1]),  # touched is enough
        (-90_000, 1, [0]),
        (-90_000, 0, []),
        (60_000, 60_000, []),
    ],
)
def test_a_window_marks_the_cells_that_it_touches(start: int, end: int, cells: list[int]) -> None:
    target = np.zeros(DAY.samples(60_000), np.bool_)
    origin = DAY.start_ms
    place_window(target, start_ms=origin + start, end_ms=origin + end, calendar=DAY)
    assert np.flatnonzero(target).tolist() == cells


@pytest.mark.parametrize(
    ("step_ms", "grid_ms"), [(1, 1_000), (7_000, 9_000), (15_000, 15_000), (30_000, 30_000)]
)
def test_the_grid_divides_a_quarter_of_an_hour(step_ms: int, grid_ms: int) -> None:
    assert grid_step(step_ms) == grid_ms


@pytest.mark.parametrize("step_ms", [0, 900_001])
def test_a_step_without_a_grid_is_refused(step_ms: int) -> None:
    with pytest.raises(ValueError, match="between 1 ms and a quarter"):
        grid_step(step_ms)
