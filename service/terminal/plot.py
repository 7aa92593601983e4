"""A chart of values over time as lines of plain text; imports nothing heavy, and fits any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

VALUE: Final = "•"
USUAL: Final = "░"
GAP: Final = "?"  # on the axis: nothing was measured there
ROWS: Final = 12
LEAST_WIDTH: Final = 20  # columns of the chart itself, also on a narrower screen
LABEL: Final = 10  # of the scale


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a time; None: it is not known. With what is usual then, if that is known."""

    at: datetime
    value: float | None
    least: float | None = None
    most: float | None = None


def plot(points: Sequence[Point], *, width: int, rows: int = ROWS) -> list[str]:
    """Return the chart of at least one point in order of time, no line wider than `width`.

    A column spans as much time as the others. It shows all values of its time from the least to the greatest, so
    that no peak is lost; a column without any is marked on the axis.
    """
    columns = _columns(points, max(width - LABEL - 2, LEAST_WIDTH))
    low, high = _scale(points)

    def row_of(value: float) -> int:
        return round((value - low) / (high - low) * (rows - 1))

    grid = [[" "] * len(columns) for _ in range(rows)]
    for place, column in enumerate(columns):
        for point in column:
            if point.least is not None or point.most is not None:
                least = low if point.least is None else point.least
                most = high if point.most is None else point.most
                _fill(grid, place, row_of(least), row_of(most), USUAL)
        values = [point.value for point in column if point.value is not None]
        if values:
            _fill(grid, place, row_of(min(values)), row_of(max(values)), VALUE)
    labels = {rows - 1: high, rows // 2: low + (high - low) * (rows // 2) / (rows - 1), 0: low}
    lines = [
        f"{_number(labels[row]) if row in labels else '':>{LABEL}} ┤{''.join(grid[row]).rstrip()}"
        for row in reversed(range(rows))
    ]
    axis = "".join(_axis(column) for column in columns)
    return [*lines, f"{'':>{LABEL}} └{axis}", _times(points, len(columns))]


def _columns(points: Sequence[Point], count: int) -> list[list[Point]]:
    """Divide points by time; a column between two values that are one step apart is not a gap."""
    begin, end = points[0].at, points[-1].at
    steps = (later.at - earlier.at for earlier, later in pairwise(points))
    step = min((step for step in steps if step), default=timedelta(seconds=1))
    count = max(min(count, (end - begin) // step + 1), 1)
    columns: list[list[Point]] = [[] for _ in range(count)]
    for point in points:
        columns[min(int((point.at - begin) / (end - begin + step) * count), count - 1)].append(
            point
        )
    return columns


def _scale(points: Sequence[Point]) -> tuple[float, float]:
    shown = [
        value
        for point in points
        for value in (point.value, point.least, point.most)
        if value is not None
    ]
    low, high = min(shown, default=0.0), max(shown, default=1.0)
    low = min(low, 0.0) if low < high / 2 else low  # from zero on, unless that hides the changes
    return (low, high) if high > low else (low, low + 1.0)


def _fill(grid: list[list[str]], place: int, least: int, most: int, mark: str) -> None:
    for row in range(max(least, 0), min(most, len(grid) - 1) + 1):
        grid[row][place] = mark


def _axis(column: Sequence[Point]) -> str:
    return "─" if any(point.value is not None for point in column) else GAP


def _times(points: Sequence[Point], width: int) -> str:
    begin, end = (f"{at:%m-%d %H:%M:%S}" for at in (points[0].at, points[-1].at))
    space = max(width - len(begin) - len(end), 1)
    return f"{'UTC':>{LABEL}}  {begin}{' ' * space}{end}" if width > len(begin) else f"{begin} UTC"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 and abs(value) < 1e8 else f"{value:.3g}"
