"""Draws a graph: lines, stacked areas, the band of what is usual, thresholds, annotations, the legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from matplotlib.ticker import MaxNLocator, MultipleLocator

from tests.pictures import colors
from tests.pictures.answers import Answers, Mark
from tests.pictures.canvas import POINTS, Canvas, shortened, width_of
from tests.pictures.display import steps_of
from tests.pictures.frames import Line, Panel, lines_of
from tests.pictures.grid import Box
from tests.pictures.scales import extent, regions, step_of, time_ticks, value_range, with_gaps
from tests.pictures.units import in_unit

SIZE: Final = 11.0  # pixels, of axes and legends
FILL_BELOW: Final = 0.35  # Grafana's opacity down to another series, where none is set
LEGEND_ROW: Final = 18.0
LEGEND_SHARE: Final = 0.35  # of the panel, at most


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a legend."""

    color: str
    name: str


def draw_graph(canvas: Canvas, panel: Panel, box: Box, answers: Answers) -> bool:
    """Draw a panel of type timeseries; False if it has nothing to show."""
    lines = lines_of(panel, answers.panels[str(panel["id"])])
    lines = [line for line in lines if line.points]
    if not lines:
        return False
    hues = [_color(line, place) for place, line in enumerate(lines)]
    entries = [Entry(hue, line.name) for hue, line in zip(hues, lines, strict=True)]
    height = draw_legend(canvas, box, entries)
    axes = time_axes(canvas, box.inside(58, 6, 14, height + 22), answers)
    if _is_stacked(panel):
        low, high = _stack(axes, lines, hues)
    else:
        low, high = _lines(axes, lines, hues, (answers.start, answers.end))
    _values(axes, panel, low, high, answers.end)
    _thresholds(axes, panel)
    for mark in answers.marks:
        _annotate(axes, mark)
    return True


def _color(line: Line, place: int) -> str:
    fixed = line.options.get("color") or {}
    if fixed.get("mode") == "fixed":
        return colors.hex_of(fixed["fixedColor"])
    return colors.CLASSIC[place % len(colors.CLASSIC)]


def _is_stacked(panel: Panel) -> bool:
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    return bool(custom.get("stacking", {}).get("mode") == "normal")


def time_axes(canvas: Canvas, box: Box, answers: Answers) -> Any:
    """Return axes over the time range, in UTC, with the marks of annotations."""
    axes = canvas.axes(box)
    axes.set_xlim(answers.start, answers.end)
    ticks = time_ticks(answers.start, answers.end, max(2, int(box.width / 90)))
    axes.set_xticks(ticks, [f"{datetime.fromtimestamp(tick, UTC):%H:%M:%S}" for tick in ticks])
    axes.tick_params(labelsize=SIZE * POINTS, labelcolor=colors.FAINT, length=0, pad=3)
    axes.grid(color=colors.GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def _values(axes: Any, panel: Panel, low: float, high: float, now: float) -> None:
    """Scale the values as Grafana does: with a little room, and from 0 on if that is near."""
    low, high = value_range(low, high)
    axes.set_ylim(low, high)
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    step = 2 ** math.ceil(math.log2((high - low) / 5))  # of bytes, which are counted in powers of 2
    locator = MultipleLocator(step) if unit == "bytes" else MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    axes.set_yticks(ticks, [in_unit(round(float(tick), 12), unit, now) for tick in ticks])


def _thresholds(axes: Any, panel: Panel) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    if defaults.get("custom", {}).get("thresholdsStyle", {}).get("mode") != "dashed":
        return
    for step in steps_of(defaults)[1:]:
        axes.axhline(
            step["value"], color=colors.hex_of(step["color"]), linewidth=0.9, dashes=(6, 4)
        )


def _annotate(axes: Any, mark: Mark) -> None:
    """Mark the times of events: a dashed line where one begins and ends, shaded between."""
    hue = colors.hex_of(mark.color)
    for series in mark.series:
        for start, end in regions(series.points, mark.step):
            for edge in {start, end}:
                axes.axvline(edge, color=hue, linewidth=0.7, dashes=(3, 3), alpha=0.7)
            axes.axvspan(start, end, color=hue, alpha=0.03, linewidth=0)


def _lines(
    axes: Any, lines: Sequence[Line], hues: Sequence[str], shown: tuple[float, float]
) -> tuple[float, float]:
    by_name = {line.name: line for line in lines}
    for line, hue in zip(lines, hues, strict=True):
        times, values = with_gaps(line.points)
        options = line.options
        axes.plot(times, values, color=hue, linewidth=options.get("custom.lineWidth", 1.0))
        lower = by_name.get(options.get("custom.fillBelowTo", ""))
        opacity = options.get("custom.fillOpacity", options["custom"]["fillOpacity"]) / 100
        if lower is not None:
            _fill_between(axes, line, lower, (hue, opacity or FILL_BELOW))
        elif opacity:
            axes.fill_between(times, values, 0, color=hue, alpha=opacity, linewidth=0)
    return extent([line.points for line in lines], shown)


def _fill_between(axes: Any, upper: Line, lower: Line, fill: tuple[str, float]) -> None:
    """Fill from a series down to another one that has the same times."""
    below = dict(lower.points)
    common = [(time, below[time], value) for time, value in upper.points if time in below]
    times, least, most = zip(*common, strict=True)
    axes.fill_between(times, least, most, color=fill[0], alpha=fill[1], linewidth=0)


def _stack(axes: Any, lines: Sequence[Line], hues: Sequence[str]) -> tuple[float, float]:
    """Stack the series; where one has no value it adds nothing."""
    step = step_of([line.points for line in lines])
    present = sorted({time for line in lines for time, _ in line.points})
    times = np.arange(present[0], present[-1] + step / 2, step)
    base = np.zeros(len(times))
    for line, hue in zip(lines, hues, strict=True):
        own = dict(line.points)
        values = np.array([own.get(float(time), math.nan) for time in times])
        top = base + np.nan_to_num(values)
        is_known = ~np.isnan(values)
        axes.fill_between(times, base, top, is_known, color=hue, alpha=0.25, linewidth=0)
        axes.plot(times, np.where(np.isnan(values), np.nan, top), color=hue, linewidth=1.0)
        base = top
    return 0.0, float(base.max())


def draw_legend(canvas: Canvas, box: Box, entries: Sequence[Entry]) -> float:
    """Write the legend at the bottom of a box; return its height."""
    rows = rows_of([entry.name for entry in entries], box.width - 16)
    most = max(1, int(box.height * LEGEND_SHARE / LEGEND_ROW))
    shown = rows[:most]
    height = LEGEND_ROW * len(shown) + 6
    place = iter(entries)
    for number, row in enumerate(shown):
        x, y = box.x + 8, box.y + box.height - height + LEGEND_ROW * (number + 0.5)
        for name in row:
            entry = next(place)
            canvas.rectangle(Box(x, y - 2, 12, 4), entry.color, radius=1)
            canvas.text((x + 17, y), name, SIZE, colors.TEXT)
            x += 17 + width_of(name, SIZE) + 14
    return height


def rows_of(names: Sequence[str], width: float) -> list[list[str]]:
    """Return names in rows of a legend."""
    rows: list[list[str]] = [[]]
    used = 0.0
    for name in names:
        short = shortened(name, SIZE, width - 40)
        need = 17 + width_of(short, SIZE) + 14
        if rows[-1] and used + need > width:
            rows.append([])
            used = 0.0
        rows[-1].append(short)
        used += need
    return rows
