"""Samples of several grids at one time: those of before give way."""

from __future__ import annotations

import numpy as np

from service.history.blocks import Block
from service.history.overlaps import without_overlaps

GAP = np.nan


def block(step: int, values: list[list[float]], *, start: int = 0, first_id: int = 1) -> Block:
    rows = np.array(values, np.float32)
    ids = np.arange(first_id, first_id + len(rows), dtype=np.int64)
    return Block(
        series_id=ids,
        metric=np.zeros(len(rows), np.uint8),
        start_ms=start,
        step_ms=step,
        values=rows,
    )


def test_a_finer_grid_clears_the_cells_in_which_it_has_a_sample() -> None:
    coarse = block(60, [[1, 2, 3], [4, 5, 6]])
    fine = block(20, [[GAP, 9, GAP, GAP, GAP, GAP, 9]], first_id=2)
    (cleared,) = without_overlaps([coarse], [fine])
    np.testing.assert_array_equal(cleared.values, [[1, 2, 3], [GAP, 5, GAP]])


def test_a_coarser_grid_clears_all_that_lies_in_its_cells() -> None:
    fine, coarse = block(20, [[1, 2, 3, 4, 5, 6, 7]], start=20), block(60, [[GAP, 9]])
    (cleared,) = without_overlaps([fine], [coarse])
    np.testing.assert_array_equal(cleared.values, [[1, 2, GAP, GAP, GAP, 6, 7]])


def test_the_same_grid_and_another_time_are_left_as_they_are() -> None:
    early = [block(60, [[1]])]
    assert without_overlaps(early, [block(60, [[2]]), block(20, [[3]], start=600)]) == early
