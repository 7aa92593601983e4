"""Draws what commands print, by rich: what is to be folded, and what `plain.py` does not draw.

Every cell and line is made printable here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from service.terminal.formats import Format, chosen_format, has_colours, is_screen
from service.terminal.parts import LABEL_WIDTH, SHOWN, Facts, Line, Part, Table
from service.terminal.plain import GAP, PIPED_WIDTH, WIDE, facts_text
from service.terminal.separated import print_rows
from service.terminal.words import printable


def console() -> Console:
    """Return a console that keeps its lines whole when its output is piped, or is to be wide.

    It shows names as they are: a group may be called "[bold]" or ":warning:".
    """
    is_coloured = sys.stdout is not None and has_colours(sys.stdout)
    width = None if is_screen() else PIPED_WIDTH
    return Console(
        markup=False,
        emoji=False,
        highlight=is_coloured,
        force_terminal=is_screen() or is_coloured,
        no_color=not is_coloured,
        color_system="auto" if is_coloured else None,
        width=WIDE if chosen_format() is Format.WIDE else width,
    )


def print_parts(parts: Iterable[Part], screen: Console, most: int = SHOWN) -> None:
    """Print parts below each other; only tables are folded, and of them the first `most` rows are drawn."""
    for part in parts:
        match part:
            case Line(words, style):
                several = (words,) if isinstance(words, str) else words
                screen.print(Text.assemble(*map(_printable, several), style=style), soft_wrap=True)
            case Facts(pairs, label_width):
                screen.print(Text(facts_text(pairs, label_width)), soft_wrap=True)
            case Table():
                for content in _draw(part, screen.width, most):
                    screen.print(content, soft_wrap=True)


def _printable(words: str | tuple[str, str]) -> str | tuple[str, str]:
    return printable(words) if isinstance(words, str) else (printable(words[0]), words[1])


def print_tables(drawn: Iterable[RenderableType], screen: Console) -> None:
    """Print what rich draws; of that, only the tables if they are to be separated by tabs."""
    if chosen_format() is not Format.TSV:
        screen.print(*drawn, sep="\n")
        return
    tables = [part for part in drawn if isinstance(part, rich_table.Table)]
    rows = ([[str(cell) for cell in row] for row in _drawn_rows(table)] for table in tables)
    print_rows(rows)


def _drawn_rows(table: rich_table.Table) -> Iterator[Iterable[RenderableType]]:
    yield [str(column.header) for column in table.columns]
    yield from zip(*(column.cells for column in table.columns), strict=True)


def _draw(table: Table[Any], screen_width: int, most: int) -> Iterator[RenderableType]:
    """Yield a table if it fits, else blocks of lines."""
    rows = table.rows[:most]
    cells = [[printable(column.cell(row)) for column in table.columns] for row in rows]
    styles = [table.style(row) for row in rows]
    hidden = len(table.rows) - most
    caption = table.caption or (f"{hidden:,} more (-o wide)" if hidden > 0 else None)
    if _least_width(table, cells) <= screen_width:
        yield _grid(table, cells, styles, caption)
        return
    headings = [column.heading for column in table.columns]
    for (first, *others), style in zip(cells, styles, strict=True):
        title = f"{table.columns[0].heading} {first}" if first.isdecimal() else first
        yield Text(title, style=style or "bold")
        yield Text(facts_text(zip(headings[1:], others, strict=True), LABEL_WIDTH))
    if caption is not None:
        yield Text(caption)


def _least_width(table: Table[Any], cells: list[list[str]]) -> int:
    widths = []
    for place, column in enumerate(table.columns):
        widest = max(map(cell_len, (column.heading, *(row[place] for row in cells))))
        widths.append(widest if column.is_short else min(widest, table.folded_width))
    return sum(widths) + GAP * (len(widths) - 1)


def _grid(
    table: Table[Any], cells: list[list[str]], styles: list[str | None], caption: str | None
) -> rich_table.Table:
    grid = rich_table.Table(box=None, pad_edge=False, header_style="dim", caption_justify="left")
    grid.caption = caption
    for column in table.columns:
        grid.add_column(column.heading, overflow="fold", no_wrap=column.is_short)
    for row, style in zip(cells, styles, strict=True):
        grid.add_row(*map(Text, row), style=style)
    return grid
