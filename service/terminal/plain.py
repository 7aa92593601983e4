"""Draws what fits a screen without folding, letter for letter as rich does, which takes 40 ms of CPU to import.

Everything else is left to `screen.py`: a table that is wider than the screen, one with a caption, and characters that
may be wider than one column.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from service.terminal.formats import is_screen
from service.terminal.parts import Facts, Line, Part, Table
from service.terminal.words import printable

PIPED_WIDTH: Final = 240  # of a table in a pipe, beyond which its cells are folded, never cut
WIDE: Final = 100_000  # columns: nothing is folded
GAP: Final = 2  # between two columns
SCREEN_WIDTH: Final = 80  # if the terminal does not tell its own
CODES: Final = {  # of ECMA-48
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36",
}  # fmt: skip
LAST_NARROW: Final = "\u02ff"  # printable characters up to this one are one column wide


def draw(part: Part, *, width: int, most: int, is_coloured: bool) -> str | None:
    """Return a part as it is printed, None if it is not as simple as that."""
    match part:
        case Line(words, style):
            several = [(words, "")] if isinstance(words, str) else map(_styled, words)
            pieces = [(printable(text), f"{style} {own}".split()) for text, own in several]
            return "".join(_paint(text, styles, is_coloured) for text, styles in pieces)
        case Facts(pairs, label_width):
            return facts_text(pairs, label_width)
        case Table():
            return _table(part, width, most, is_coloured)


def facts_text(pairs: Iterable[tuple[str, object]], label_width: int) -> str:
    """Return labels and values in lines; None is left out."""
    shown = [(printable(name), printable(str(value))) for name, value in pairs if value is not None]
    width = max([label_width, *(len(name) + 1 for name, _ in shown)])
    return "\n".join(f"  {name:<{width}} {value}" for name, value in shown)


def _styled(words: str | tuple[str, str]) -> tuple[str, str]:
    return (words, "") if isinstance(words, str) else words


def _table(table: Table[Any], width: int, most: int, is_coloured: bool) -> str | None:  # noqa: FBT001
    if table.caption is not None or len(table.rows) > most:
        return None
    headings = [column.heading for column in table.columns]
    rows = [[printable(column.cell(row)) for column in table.columns] for row in table.rows]
    if any(max(cell, default="") > LAST_NARROW for row in [headings, *rows] for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) > width:
        return None
    lines = [_paint(_aligned(headings, widths), ["dim"], is_coloured)]
    for row, cells in zip(table.rows, rows, strict=True):
        styles = (table.style(row) or "").split()
        lines.append(_paint(_aligned(cells, widths), styles, is_coloured))
    return "\n".join(lines)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * GAP).join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))


def _paint(text: str, styles: Sequence[str], is_coloured: bool) -> str:  # noqa: FBT001
    if not is_coloured or not styles or not text:
        return text
    return f"\x1b[{';'.join(CODES[style] for style in styles if style in CODES)}m{text}\x1b[0m"


def screen_width() -> int:
    """Return the columns of the screen, or how wide a table in a pipe may be."""
    if not is_screen():
        return PIPED_WIDTH
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return int(columns) or SCREEN_WIDTH
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or SCREEN_WIDTH
    except (OSError, ValueError):
        return SCREEN_WIDTH
