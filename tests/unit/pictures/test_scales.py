"""Axes have room, gaps stay gaps, and buckets are what lies between two bounds."""

from __future__ import annotations

import math

import pytest

from tests.pictures.frames import Line
from tests.pictures.scales import (
    buckets_of,
    extent,
    regions,
    spans,
    time_ticks,
    value_range,
    with_gaps,
)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.0, 10.0, (0.0, 11.0)),
        (0.5, 10.0, (0.0, 10.95)),
        (90.0, 100.0, (89.0, 101.0)),
        (-10.0, 10.0, (-12.0, 12.0)),
        (-10.0, 0.0, (-11.0, 0.0)),
        (0.0, 0.0, (0.0, 1.0)),
        (50.0, 50.0, (45.0, 55.0)),
    ],
)
def test_an_axis_has_room_and_begins_at_zero_if_that_is_near(
    low: float, high: float, shown: tuple[float, float]
) -> None:
    assert value_range(low, high) == pytest.approx(shown)


def test_ticks_are_round_times_within_the_range() -> None:
    assert time_ticks(61.0, 300.0, 5) == [120.0, 180.0, 240.0, 300.0]
    assert time_ticks(0.0, 9.0, 10) == [float(second) for second in range(10)]


def test_a_line_is_broken_where_points_are_missing() -> None:
    times, values = with_gaps([(0, 1.0), (2, 1.0), (4, 1.0), (10, 2.0), (12, 2.0)])
    assert times == [0, 2, 4, 6, 10, 12]
    assert math.isnan(values[3])
    assert with_gaps([(5, 1.0)]) == ([5], [1.0])


def test_only_what_is_in_view_makes_the_extent() -> None:
    points = [(0.0, 100.0), (5.0, 1.0), (6.0, math.nan), (7.0, 3.0)]
    assert extent([points], (4, 8)) == (1.0, 3.0)
    assert extent([points], (20, 30)) == (1.0, 100.0), "a line through the view, from outside"


def test_a_mark_lasts_as_long_as_no_point_is_missing() -> None:
    assert regions([(0, 1), (60, 1), (120, 2), (300, 1)], 60) == [(0, 120), (300, 300)]


def test_a_state_lasts_until_the_next_one_and_ends_where_points_are_missing() -> None:
    points = [(0, 1.0), (2, 1.0), (4, 2.0), (6, 2.0), (20, 1.0), (22, 1.0)]
    assert spans(points, 2) == [(0, 4, 1.0), (4, 8, 2.0), (20, 24, 1.0)]
    assert spans([(3, 1.0)], 2) == [(3, 5, 1.0)], "also the only point"


def test_a_bucket_has_what_lies_between_its_bound_and_the_one_below() -> None:
    lines = [
        Line(name=name, points=((0.0, count), (2.0, count)), options={})
        for name, count in (("+Inf", 7.0), ("0.1", 2.0), ("1", 5.0))
    ]
    times, bounds, counts = buckets_of(lines)
    assert list(times) == [0.0, 2.0]
    assert bounds == [0.1, 1.0, math.inf]
    assert counts.tolist() == [[2.0, 2.0], [3.0, 3.0], [2.0, 2.0]]
