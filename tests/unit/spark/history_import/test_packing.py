"""The step of a grid, found from times."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from rules.baseline.civil import civil_day
from spark.history_import.packing import LONE_STEP_MS, cells_of, step_of

WHERE = (date(2026, 11, 20), "Europe/Berlin")
DAY = civil_day(*WHERE)


@pytest.mark.parametrize(
    ("seconds", "step"),
    [
        ([0, 15.001, 30.001, 45.002], 15),
        ([0, 14.99, 29.99, 60], 15),  # one gap
        ([0, 60, 60, 120, 3600], 60),  # a time twice
        ([0, 40, 80], 36),  # no divisor of a quarter of an hour; one of 45 s would lose one in nine
        ([0, 720, 1440], 900),  # with 450 s, nearly half of the cells would be empty
        ([0, 0.2, 0.4], 1),
        ([0, 7200, 14_400], 900),
    ],
)
def test_the_step_is_the_usual_distance_in_whole_seconds(seconds: list[float], step: int) -> None:
    assert step_of(np.array(seconds) * 1000 // 1) == step * 1000


@pytest.mark.parametrize("times", [[5], [5, 5]])
def test_one_time_has_a_step_too(times: list[int]) -> None:
    assert step_of(np.array(times, np.int64)) == LONE_STEP_MS


@pytest.mark.parametrize("phase", [0, 200, 7_000, 14_900])
def test_times_that_scatter_have_a_cell_each(phase: int) -> None:
    scattered = np.random.default_rng(1).integers(-3_000, 3_000, 5_760)
    times = DAY.start_ms + np.arange(5_760) * 15_000 + phase + scattered
    times = times[(times >= DAY.start_ms) & (times < DAY.end_ms)]
    assert step_of(times) == 15_000
    cells = cells_of(times, 15_000, *WHERE)
    assert len(np.unique(cells)) >= len(times) - 1  # at midnight two may share one
    assert np.abs(cells * 15_000 + phase - times).max() <= 18_000
    assert DAY.start_ms <= cells[0] * 15_000 <= cells[-1] * 15_000 < DAY.end_ms


def test_times_that_do_not_scatter_are_in_their_cells() -> None:
    times = DAY.start_ms + np.arange(100) * 15_000 + 14_900
    assert cells_of(times, 15_000, *WHERE).tolist() == (times // 15_000).tolist()
