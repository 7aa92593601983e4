"""Draws a table, as wide and as high as Grafana's is on the screen: what is beyond has to be scrolled to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.pictures import colors
from tests.pictures.answers import Answers
from tests.pictures.canvas import Canvas, shortened, width_of
from tests.pictures.display import Shown, show
from tests.pictures.frames import Column, Panel, columns_of
from tests.pictures.grid import Box

ROW: Final = 36.0
SIZE: Final = 13.0
LEAST: Final = 150.0  # pixels of a column, unless a panel says something else
SLICE: Final = 40.0  # pixels of a column that hold no text


def draw_table(canvas: Canvas, panel: Panel, box: Box, answers: Answers) -> bool:
    """Draw a panel of type table; False if it has no rows."""
    columns = columns_of(panel, answers.panels[str(panel["id"])])
    if not columns or not columns[0].cells:
        return False
    least = panel["fieldConfig"]["defaults"].get("custom", {}).get("minWidth", LEAST)
    widths = widths_of(columns, box.width, least)
    x = box.x
    for column, width in zip(columns, widths, strict=True):
        if x + SLICE >= box.x + box.width:
            break
        _draw_column(
            canvas,
            column,
            Box(x, box.y, min(width, box.x + box.width - x), box.height),
            answers.end,
        )
        x += width
    _rules(canvas, box, len(columns[0].cells))
    _scrollbars(canvas, box, len(columns[0].cells), sum(widths))
    return True


def widths_of(columns: Sequence[Column], width: float, least: float) -> list[float]:
    """Return the widths: those that are set, and what is left in equal parts, not below the least."""
    fixed = [column.options.get("custom.width") for column in columns]
    free = fixed.count(None)
    left = width - sum(value for value in fixed if value is not None)
    part = max(least, left / free) if free else 0.0
    return [part if value is None else float(value) for value in fixed]


def _draw_column(canvas: Canvas, column: Column, box: Box, now: float) -> None:
    is_number = any(isinstance(cell, int | float) for cell in column.cells) and not column.is_time
    _cell(canvas, box, column.title, "#6e9fff", is_right=is_number)
    room = int((box.height - ROW) / ROW)
    for number, cell in enumerate(column.cells[:room]):
        shown = show(cell, column.options, now, is_time=column.is_time)
        place = Box(box.x, box.y + ROW * (number + 1), box.width, ROW)
        _cell(canvas, place, shown.text, _ink(column, shown), is_right=is_number)


def _ink(column: Column, shown: Shown) -> str:
    options = column.options.get("custom.cellOptions") or {}
    return colors.hex_of(shown.color) if options.get("type") == "color-text" else colors.TEXT


def _cell(canvas: Canvas, box: Box, text: str, color: str, *, is_right: bool) -> None:
    text = shortened(text.replace("\n", " "), SIZE, box.width - 14)
    x = box.x + box.width - 8 - width_of(text, SIZE) if is_right else box.x + 8
    canvas.text((x, box.y + ROW / 2), text, SIZE, color)


def _rules(canvas: Canvas, box: Box, rows: int) -> None:
    shown = min(rows, int((box.height - ROW) / ROW))
    for number in range(1, shown + 1):
        y = box.y + ROW * number
        canvas.line((box.x, y), (box.x + box.width, y), colors.GRID)


def _scrollbars(canvas: Canvas, box: Box, rows: int, width: float) -> None:
    """Show that there is more, and how much."""
    high = ROW * (rows + 1)
    if high > box.height:
        bar = Box(box.x + box.width - 5, box.y + ROW, 4, (box.height - ROW) * box.height / high)
        canvas.rectangle(bar, colors.BORDER, radius=1)
    if width > box.width + 1:
        bar = Box(box.x, box.y + box.height - 4, box.width * box.width / width, 4)
        canvas.rectangle(bar, colors.BORDER, radius=1)
