"""Charts as parts of an answer, as wide as the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import Final

from service.terminal.parts import Line, Part
from service.terminal.plot import Point, plot

MARKS: Final = "• measured   ? not measured"


def plotted(points: Iterable[Point], unit: str | None, marks: str = MARKS) -> Iterator[Part]:
    """Yield the chart of at least one point, and what its marks mean; `unit` is None for a share."""
    for line in plot(list(points), width=shutil.get_terminal_size().columns):
        yield Line(line)
    yield Line(f"  {marks}   {unit or 'share'}", "dim")
