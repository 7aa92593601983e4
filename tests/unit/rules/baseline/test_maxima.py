"""Scores that are held for a time: what caps are made of."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.maxima import sustained

NAN = np.nan


@pytest.mark.parametrize(
    ("score", "width", "expected"),
    [
        pytest.param([1, 5, 2, 7, 8, 9], 1, [1, 5, 2, 7, 8, 9], id="one sample is enough"),
        pytest.param([1, 5, 2, 7, 8, 9], 3, [0, 0, 1, 2, 2, 7], id="none before it is held"),
        pytest.param([4, NAN, 4, 4], 2, [0, NAN, 4, 4], id="a gap neither breaks nor makes one"),
        pytest.param([9, 9, 9, 9, 9, 9, -1, 9], 5, [0, 0, 0, 0, 9, 9, -1, -1], id="broken off"),
    ],
)
def test_the_least_of_a_time_is_what_was_held(
    score: list[float], width: int, expected: list[float]
) -> None:
    held = sustained(np.array([score], np.float32), np.array([width]))
    np.testing.assert_array_equal(held[0], np.array(expected, np.float32))
