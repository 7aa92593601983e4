"""Grafana's dark theme: what a color of a dashboard is on the screen."""

from __future__ import annotations

from typing import Final

PAGE: Final = "#111217"
PANEL: Final = "#181b1f"
BORDER: Final = "#2e3137"
GRID: Final = "#272a30"
TEXT: Final = "#ccccdc"
FAINT: Final = "#8f909c"
NAMED: Final = {
    "green": "#73bf69",
    "orange": "#ff9830",
    "red": "#f2495c",
    "blue": "#5794f2",
    "text": TEXT,
}
# Of series, in their order.
CLASSIC: Final = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c"),
    *("#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a"),
)


def hex_of(name: str) -> str:
    """Return the color that Grafana gives a name; a hexadecimal color is itself.

    Raises:
        KeyError: no dashboard of ours had the name so far.
    """
    return name if name.startswith("#") else NAMED[name]


def darker(color: str, share: float) -> str:
    """Return a color with this share of its brightness."""
    parts = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part * share):02x}" for part in parts)
