"""The step of a grid, found from times."""

from __future__ import annotations

import numpy as np
import pytest

from spark.history_import.packing import LONE_STEP_MS, step_of


@pytest.mark.parametrize(
    ("seconds", "step"),
    [
        ([0, 15.001, 30.001, 45.002], 15),
        ([0, 14.99, 29.99, 60], 15),  # one gap
        ([0, 60, 60, 120, 3600], 60),  # a time twice
        ([0, 40, 80], 45),  # no divisor of a quarter of an hour
        ([0, 0.2, 0.4], 1),
        ([0, 7200, 14_400], 900),
    ],
)
def test_the_step_is_the_usual_distance_in_whole_seconds(seconds: list[float], step: int) -> None:
    assert step_of(np.array(seconds) * 1000 // 1) == step * 1000


@pytest.mark.parametrize("times", [[5], [5, 5]])
def test_one_time_has_a_step_too(times: list[int]) -> None:
    assert step_of(np.array(times, np.int64)) == LONE_STEP_MS
