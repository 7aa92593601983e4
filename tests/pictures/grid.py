"""Grafana's page: 24 columns, rows of 30 pixels with 8 between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 1440  # pixels, of a laptop's screen
MARGIN: Final = 16
GAP: Final = 8
ROW: Final = 30
COLUMNS: Final = 24
HEADER: Final = 84  # above the panels: title, question, variables and time range


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels from the top left."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, left: float, top: float, right: float, bottom: float) -> Box:
        """Return what remains without so many pixels at each side."""
        return Box(
            self.x + left, self.y + top, self.width - left - right, self.height - top - bottom
        )


def box_of(place: Mapping[str, Any]) -> Box:
    """Return where a panel is, from its `gridPos`."""
    column = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
    return Box(
        MARGIN + place["x"] * (column + GAP),
        HEADER + place["y"] * (ROW + GAP),
        place["w"] * (column + GAP) - GAP,
        place["h"] * (ROW + GAP) - GAP,
    )


def height_of(panels: Sequence[Mapping[str, Any]]) -> float:
    """Return the height of a page that holds these panels."""
    bottom = max(place["y"] + place["h"] for place in (panel["gridPos"] for panel in panels))
    return HEADER + float(bottom) * (ROW + GAP) + MARGIN
