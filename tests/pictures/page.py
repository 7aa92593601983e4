"""Draws a whole dashboard: its head, the headings of rows, and every panel with its title."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.pictures import colors
from tests.pictures.answers import Answers
from tests.pictures.canvas import Canvas
from tests.pictures.frames import Panel
from tests.pictures.graph import draw_graph
from tests.pictures.grid import MARGIN, WIDTH, Box, box_of, height_of
from tests.pictures.heatmap import draw_heatmap
from tests.pictures.stat import draw_stat
from tests.pictures.table import draw_table
from tests.pictures.timeline import draw_timeline

TITLE: Final = 32.0  # pixels of a panel, for its title
DRAWERS: Final[Mapping[str, Callable[[Canvas, Panel, Box, Answers], bool]]] = {
    "stat": draw_stat,
    "timeseries": draw_graph,
    "table": draw_table,
    "heatmap": draw_heatmap,
    "state-timeline": draw_timeline,
}


def draw_page(document: Mapping[str, Any], answers: Answers) -> tuple[Canvas, list[str]]:
    """Return the picture of a dashboard, and the titles of panels that have no data."""
    canvas = Canvas(WIDTH, height_of(document["panels"]))
    _head(canvas, document, answers)
    empty = []
    for panel in document["panels"]:
        box = box_of(panel["gridPos"])
        if panel["type"] == "row":
            canvas.text((box.x + 4, box.y + box.height / 2), "⌄  " + panel["title"], 16)
            continue
        canvas.rectangle(box, colors.PANEL, colors.BORDER)
        canvas.text((box.x + 10, box.y + 16), panel["title"], 14)
        inner = box.inside(1, TITLE, 1, 2)
        if not DRAWERS[panel["type"]](canvas, panel, inner, answers):
            middle = (inner.x + inner.width / 2, inner.y + inner.height / 2 - 8)
            canvas.text(middle, "No data", 16, colors.FAINT, ha="center")
            empty.append(panel["title"])
    return canvas, empty


def _head(canvas: Canvas, document: Mapping[str, Any], answers: Answers) -> None:
    canvas.text((MARGIN, 22), f"Kafka exactly-once  /  {document['title']}", 18)
    start, end = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
        for at in (answers.start, answers.end)
    )
    canvas.text((WIDTH - MARGIN, 22), f"{start} to {end} UTC", 13, colors.FAINT, ha="right")
    x = float(MARGIN)
    for name, value in answers.chosen.items():
        canvas.text((x, 58), name, 13, colors.FAINT)
        x += 9.0 * len(name) + 10
        canvas.text((x, 58), value, 13)
        x += 9.0 * len(value) + 26
