"""Draws a chart as SVG: text that depends on nothing but the values, with every name escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Final

from service.cli.incident.report import Chart, ChartPoint

WIDTH: Final = 720
HEIGHT: Final = 180
LEFT: Final = 80  # of the scale
TOP: Final = 28  # of the title
BOTTOM: Final = 24  # of the times
MOST_POINTS: Final = (
    640  # one per pixel; of more, the least and the greatest of each pixel are drawn
)
HEAD: Final = (
    f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
    f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
)


def svg_of(chart: Chart) -> str:
    """Return the chart of at least one point; where nothing was measured it is grey, never a line."""
    begin, end = chart.points[0].at, chart.points[-1].at
    low, high = _scale(chart.points)

    def across(at: datetime) -> float:
        share = (at - begin) / (end - begin) if end > begin else 0.0
        return LEFT + share * (WIDTH - LEFT)

    def down(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    label = f"{chart.title}, {chart.unit or 'share'}"
    parts = [
        HEAD,
        f"<title>{escape(label)}</title>",
        f'<text x="0" y="16">{escape(label)}</text>',
        *_gaps(chart.points, across),
        *(_scale_line(value, down(value)) for value in (high, low)),
        *_lines(chart.points, across, down),
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{begin:%Y-%m-%d %H:%M:%S} UTC</text>',
        f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end">{end:%Y-%m-%d %H:%M:%S} UTC</text>',
        "</svg>",
    ]
    return "".join(parts)


def _scale(points: Sequence[ChartPoint]) -> tuple[float, float]:
    values = [point.value for point in points if point.value is not None]
    low, high = min(0.0, *values, 0.0), max(values, default=1.0)
    return (low, high) if high > low else (low, low + 1.0)


def _scale_line(value: float, y: float) -> str:
    return (
        f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}" stroke="#ccc"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.6g}</text>'
    )


def runs_of_gaps(points: Sequence[ChartPoint]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times from the first unknown value of each run of them to the next known one."""
    first: datetime | None = None
    for point in points:
        if point.value is None:
            first = first or point.at
        elif first is not None:
            yield first, point.at
            first = None
    if first is not None:
        yield first, points[-1].at


def _gaps(points: Sequence[ChartPoint], across: Callable[[datetime], float]) -> Iterator[str]:
    for begin, end in runs_of_gaps(points):
        x, width = across(begin), max(across(end) - across(begin), 1.0)
        yield (
            f'<rect x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}" '
            'fill="#eee"><title>not measured</title></rect>'
        )


def _lines(
    points: Sequence[ChartPoint],
    across: Callable[[datetime], float],
    down: Callable[[float], float],
) -> Iterator[str]:
    """Yield a line per run of known values, or a dot for a single one."""
    run: list[str] = []
    for point in (*_thinned(points), None):
        if point is not None and point.value is not None:
            run.append(f"{across(point.at):.1f},{down(point.value):.1f}")
            continue
        if len(run) > 1:
            yield f'<polyline fill="none" stroke="#c33" stroke-width="1.5" points="{" ".join(run)}"/>'
        elif run:
            x, _, y = run[0].partition(",")
            yield f'<circle cx="{x}" cy="{y}" r="2" fill="#c33"/>'
        run = []


def _thinned(points: Sequence[ChartPoint]) -> Iterator[ChartPoint]:
    """Yield the points, of too many the least and the greatest of each pixel, and each gap."""
    if len(points) <= MOST_POINTS:
        yield from points
        return
    size = -(-len(points) // (MOST_POINTS // 2))
    for place in range(0, len(points), size):
        some = points[place : place + size]
        measured = [(point.value, at) for at, point in enumerate(some) if point.value is not None]
        extremes = {min(measured)[1], max(measured)[1]} if measured else set()
        extremes |= {at for at, point in enumerate(some) if point.value is None}
        yield from (some[at] for at in sorted(extremes))


def longest_gaps(points: Sequence[ChartPoint], least: timedelta) -> list[tuple[datetime, datetime]]:
    """Return the gaps of at least a duration, in order of time."""
    return [(begin, end) for begin, end in runs_of_gaps(points) if end - begin >= least]
