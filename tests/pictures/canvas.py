"""A page to draw on, measured in pixels from its top left; only this folder's drawing knows matplotlib."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import TextPath
from PIL import Image

from tests.pictures import colors
from tests.pictures.grid import Box

DPI: Final = 100
POINTS: Final = 72 / DPI  # of a pixel
COLORS: Final = 160  # of the palette of a file


class Canvas:
    """One picture."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure: Any = Figure(
            figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=colors.PAGE
        )
        FigureCanvasAgg(self.figure)

    def rectangle(self, box: Box, fill: str, edge: str = "none", radius: float = 2) -> None:
        """Fill a rectangle with round corners."""
        self.figure.add_artist(
            FancyBboxPatch(
                (box.x + radius, self.height - box.y - box.height + radius),
                box.width - 2 * radius,
                box.height - 2 * radius,
                boxstyle=f"round,pad={radius}",
                facecolor=fill,
                edgecolor=edge,
                linewidth=0.8,
                transform=None,
                zorder=-1,  # below all axes
            )
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
        """Draw a thin line."""
        box = Box(start[0], start[1], max(1, end[0] - start[0]), max(1, end[1] - start[1]))
        self.rectangle(box, color, radius=0)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size: float,
        color: str = colors.TEXT,
        **more: Any,
    ) -> None:
        """Write a line of text of so many pixels in size; `at` is its left end, at half its height."""
        more = {"ha": "left", "va": "center_baseline", **more}
        self.figure.text(
            at[0] / self.width,
            1 - at[1] / self.height,
            text,
            fontsize=size * POINTS,
            color=color,
            parse_math=False,
            **more,
        )

    def axes(self, box: Box) -> Any:
        """Return empty axes of matplotlib."""
        place = (
            box.x / self.width,
            1 - (box.y + box.height) / self.height,
            box.width / self.width,
            box.height / self.height,
        )
        return self.figure.add_axes(place, facecolor="none")

    def save(self, path: Path) -> None:
        """Write the picture as a PNG of few colors."""
        self.figure.canvas.draw()
        image = Image.fromarray(np.asarray(self.figure.canvas.buffer_rgba())[..., :3])
        small = image.quantize(COLORS, kmeans=2, dither=Image.Dither.NONE)
        small.save(path, optimize=True)


@cache
def width_of(text: str, size: float) -> float:
    """Return how many pixels a line of text needs."""
    if not text.strip():
        return 0.0
    extent = TextPath((0, 0), text, size=size, prop=FontProperties(), usetex=False).get_extents()
    return float(extent.width)


def shortened(text: str, size: float, width: float) -> str:
    """Return a text that fits into so many pixels, with an ellipsis if it had to be cut."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "…", size) > width:
        text = text[:-1]
    return text + "…"
