"""Draws a stat: one number, or one per series, on the color of what it means."""

from __future__ import annotations

from tests.pictures import colors
from tests.pictures.answers import Answers, Cell
from tests.pictures.canvas import Canvas, width_of
from tests.pictures.display import show
from tests.pictures.frames import Panel, values_of
from tests.pictures.grid import Box

DARK = 0.72  # of the brightness of a color that is a background
LARGEST = 44.0  # pixels


def draw_stat(canvas: Canvas, panel: Panel, box: Box, answers: Answers) -> bool:
    """Draw a panel of type stat; it always shows something, if only that nothing is known."""
    values = values_of(panel, answers.panels[str(panel["id"])]) or [("", None)]
    width = box.width / len(values)
    for place, (name, value) in enumerate(values):
        part = Box(box.x + place * width, box.y, width, box.height)
        _draw_value(canvas, panel, part, (name if len(values) > 1 else "", value), answers.end)
    return True


def _draw_value(
    canvas: Canvas, panel: Panel, box: Box, named: tuple[str, Cell], now: float
) -> None:
    name, value = named
    shown = show(value, panel["fieldConfig"]["defaults"], now)
    color = colors.hex_of(shown.color)
    mode = panel["options"]["colorMode"]
    ink = {"background": "#ffffff", "value": color}.get(mode, colors.TEXT)
    if mode == "background":
        canvas.rectangle(box.inside(4, 2, 4, 4), colors.darker(color, DARK))
    size = min(LARGEST, LARGEST * (box.width - 40) / max(1.0, width_of(shown.text, LARGEST)))
    middle = (box.x + box.width / 2, box.y + box.height / 2 + (8 if name else 0))
    canvas.text(middle, shown.text, size, ink, ha="center")
    if name:
        canvas.text((middle[0], box.y + 16), name, 13, ink, ha="center")
