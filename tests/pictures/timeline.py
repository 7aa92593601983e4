"""Draws a state timeline: a bar per series, in the color of its value."""

from __future__ import annotations

from tests.pictures import colors
from tests.pictures.answers import Answers
from tests.pictures.canvas import Canvas, shortened, width_of
from tests.pictures.display import show
from tests.pictures.frames import Panel, lines_of
from tests.pictures.graph import SIZE, time_axes
from tests.pictures.grid import Box
from tests.pictures.scales import spans, step_of

LABELS = 0.34  # of the width, for the names at most


def draw_timeline(canvas: Canvas, panel: Panel, box: Box, answers: Answers) -> bool:
    """Draw a panel of type state-timeline; False if it has nothing to show."""
    lines = [line for line in lines_of(panel, answers.panels[str(panel["id"])]) if line.points]
    if not lines:
        return False
    left = min(box.width * LABELS, max(width_of(line.name, SIZE) for line in lines) + 24)
    axes = time_axes(canvas, box.inside(left, 6, 14, 28), answers)
    axes.set_ylim(len(lines), 0)
    axes.set_yticks([])
    height = (box.height - 34) / len(lines)
    step = step_of([line.points for line in lines])
    for row, line in enumerate(lines):
        for start, end, value in spans(line.points, step):
            shown = show(value, line.options, answers.end)
            hue = colors.hex_of(shown.color)
            axes.barh(row + 0.5, end - start, left=start, height=0.8, color=hue, linewidth=0)
            pixels = (end - start) / (answers.end - answers.start) * (box.width - left - 14)
            if width_of(shown.text, SIZE) + 6 < pixels:
                axes.text(
                    (start + end) / 2, row + 0.5, shown.text, color=colors.PAGE, fontsize=SIZE * 0.72,
                    ha="center", va="center_baseline",
                )  # fmt: skip
        at = (box.x + 8, box.y + 6 + height * (row + 0.5))
        canvas.text(at, shortened(line.name, SIZE, left - 16), SIZE)
    return True
