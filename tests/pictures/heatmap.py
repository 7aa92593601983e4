"""Draws the buckets of a histogram over time: how many fell into each, per second."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tests.pictures import colors
from tests.pictures.answers import Answers
from tests.pictures.canvas import Canvas
from tests.pictures.frames import Panel, lines_of
from tests.pictures.graph import time_axes
from tests.pictures.grid import Box
from tests.pictures.scales import buckets_of
from tests.pictures.units import in_unit

SCHEMES: Final = {"Oranges": "Oranges", "Spectral": "Spectral_r"}


def draw_heatmap(canvas: Canvas, panel: Panel, box: Box, answers: Answers) -> bool:
    """Draw a panel of type heatmap; False if it has nothing to show."""
    lines = lines_of(panel, answers.panels[str(panel["id"])])
    times, bounds, counts = buckets_of(lines)
    if not len(times) or not np.nansum(counts):
        return False
    axes = time_axes(canvas, box.inside(58, 6, 14, 26), answers)
    visible = np.where(counts > 0, counts, np.nan)
    scheme = SCHEMES.get(panel["options"]["color"].get("scheme", ""), "Oranges")
    step = times[1] - times[0] if len(times) > 1 else 1.0
    edges = np.append(times - step / 2, times[-1] + step / 2)
    rows = np.arange(len(bounds) + 1)
    axes.pcolormesh(edges, rows, visible, cmap=f"{scheme}", edgecolors=colors.PANEL, linewidth=0.4)
    axes.set_xlim(answers.start, answers.end)
    every = max(1, math.ceil(len(bounds) / 8))
    places = list(range(0, len(bounds), every))
    names = [
        in_unit(bounds[place], panel["fieldConfig"]["defaults"]["unit"], 0) for place in places
    ]
    axes.set_yticks([place + 1 for place in places], names)
    axes.grid(visible=False)
    return True
