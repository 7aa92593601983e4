"""Where values go: the ranges of axes, and what of a series belongs together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np

from tests.pictures.answers import Point
from tests.pictures.frames import Line

PADDING: Final = 0.1  # of the range of values, above and below


def time_ticks(start: float, end: float, most: int) -> list[float]:
    """Return round times within a range, so many at most."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
    step = next((s for s in steps if (end - start) / s <= most), steps[-1])
    first = math.ceil(start / step) * step
    return [float(first + step * number) for number in range(int((end - first) // step) + 1)]


def value_range(low: float, high: float) -> tuple[float, float]:
    """Return the range of an axis for values from `low` to `high`."""
    if low == high == 0:
        return 0.0, 1.0
    room = PADDING * ((high - low) or abs(high))
    bottom = 0.0 if 0 <= low <= room else low - room
    top = 0.0 if 0 >= high >= -room and low < 0 else high + room
    return bottom, top


def extent(
    all_points: Sequence[Sequence[Point]], shown: tuple[float, float]
) -> tuple[float, float]:
    """Return the least and the largest value within the time range, or else of all points."""
    inside = [v for points in all_points for t, v in points if shown[0] <= t <= shown[1]]
    values = [v for v in inside or [v for points in all_points for _, v in points] if v == v]  # noqa: PLR0124
    return (min(values), max(values)) if values else (0.0, 1.0)


def with_gaps(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Return times and values, with NaN where points are missing: a line is broken there."""
    distances = sorted(later[0] - point[0] for point, later in pairwise(points))
    usual = distances[len(distances) // 2] if distances else 0.0
    times: list[float] = []
    values: list[float] = []
    for time, value in points:
        if times and time - times[-1] > 1.5 * usual:
            times.append(times[-1] + usual)
            values.append(math.nan)
        times.append(time)
        values.append(value)
    return times, values


def regions(points: Sequence[Point], step: float) -> list[tuple[float, float]]:
    """Return from when to when there are points without one missing."""
    ranges: list[tuple[float, float]] = []
    for time, _ in points:
        if ranges and time - ranges[-1][1] <= step:
            ranges[-1] = (ranges[-1][0], time)
        else:
            ranges.append((time, time))
    return ranges


def step_of(all_points: Sequence[Sequence[Point]]) -> float:
    """Return the least distance of two points of a series; 1 without any."""
    return min((b[0] - a[0] for points in all_points for a, b in pairwise(points)), default=1.0)


def spans(points: Sequence[Point], step: float) -> list[tuple[float, float, float]]:
    """Return from when to when a series had which value; each lasts until the next point, or for a step."""
    times, values = with_gaps([*points, (points[-1][0] + step, math.nan)])
    ranges = []
    for value, group in groupby(range(len(times)), key=lambda place: values[place]):
        places = list(group)
        after = min(places[-1] + 1, len(times) - 1)
        if value == value:  # noqa: PLR0124 - NaN is where points are missing
            ranges.append((times[places[0]], times[after], value))
    return ranges


def buckets_of(lines: list[Line]) -> tuple[Any, list[float], Any]:
    """Return times, upper bounds, and what fell between a bound and the one below, a row per bound."""
    by_bound = sorted(((float(line.name), dict(line.points)) for line in lines), key=_bound)
    times = sorted({time for _, points in by_bound for time in points})
    totals = np.array([[points.get(time, math.nan) for time in times] for _, points in by_bound])
    counts = np.diff(totals, axis=0, prepend=0) if len(totals) else totals
    return np.array(times), [bound for bound, _ in by_bound], counts


def _bound(item: tuple[float, Any]) -> float:
    return item[0]
