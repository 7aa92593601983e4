"""A chart of text: what is measured is on it, what is not is marked."""

from __future__ import annotations

import pytest

from service.terminal.plot import Point, plot
from tests.factories import at


@pytest.mark.parametrize(
    ("seconds", "axis"),
    [
        ((0, 0), "─"),  # two rounds in one second, or one that was imported twice
        ((0, 0, 15), "──"),
        ((0, 15, 45), "──?─"),
    ],
)
def test_a_column_is_a_step_of_time_however_many_values_it_has(
    seconds: tuple[int, ...], axis: str
) -> None:
    points = [Point(at(second), float(number)) for number, second in enumerate(seconds)]
    *_, drawn, times = plot(points, width=80)
    assert drawn.partition("└")[2] == axis
    assert "UTC" in times
