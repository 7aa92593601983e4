"""Draws what commands print. Every cell and line is made printable here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from service.cli.terminal.parts import LABEL_WIDTH, SHOWN, Facts, Line, Part, Table
from service.cli.terminal.words import printable

PIPED_WIDTH: Final = 240  # nobody folds the lines of a pipe
NAME_WIDTH: Final = 20  # the least width of a column of names, if its names are longer
GAP: Final = 2  # between two columns


def console() -> Console:
    """Return a console that keeps its lines whole when its output is piped.

    It shows names as they are: a group may be called "[bold]" or ":warning:".
    """
    plain = Console(markup=False, emoji=False)
    return plain if plain.is_terminal else Console(markup=False, emoji=False, width=PIPED_WIDTH)


def print_parts(parts: Iterable[Part], screen: Console | None = None) -> None:
    """Print parts below each other; only tables are folded."""
    screen = screen or console()
    for part in parts:
        match part:
            case Line(words, style):
                several = (words,) if isinstance(words, str) else words
                screen.print(Text.assemble(*map(_printable, several), style=style), soft_wrap=True)
            case Facts(pairs, label_width):
                screen.print(_facts(pairs, label_width), soft_wrap=True)
            case Table():
                for content in _draw(part, screen.width):
                    screen.print(content, soft_wrap=part.has_blocks)


def _printable(words: str | tuple[str, str]) -> str | tuple[str, str]:
    return printable(words) if isinstance(words, str) else (printable(words[0]), words[1])


def _facts(pairs: Iterable[tuple[str, object]], label_width: int) -> Text:
    shown = [(name, printable(str(value))) for name, value in pairs if value is not None]
    width = max([label_width, *(len(name) + 1 for name, _ in shown)])
    return Text("\n".join(f"  {name:<{width}} {value}" for name, value in shown))


def _draw(table: Table[Any], screen_width: int) -> Iterator[RenderableType]:
    """Yield a table if it fits, else blocks of lines."""
    rows = table.rows[:SHOWN]
    cells = [[printable(column.cell(row)) for column in table.columns] for row in rows]
    styles = [table.style(row) for row in rows]
    hidden = len(table.rows) - SHOWN
    caption = table.caption or (f"{hidden} more (-o json)" if hidden > 0 else None)
    if not table.has_blocks or _least_width(table, cells) <= screen_width:
        yield _grid(table, cells, styles, caption)
        return
    headings = [column.heading for column in table.columns]
    for (first, *others), style in zip(cells, styles, strict=True):
        yield Text(first, style=style or "bold")
        yield _facts(zip(headings[1:], others, strict=True), LABEL_WIDTH)
    if caption is not None:
        yield Text(caption)


def _least_width(table: Table[Any], cells: list[list[str]]) -> int:
    widths = []
    for place, column in enumerate(table.columns):
        widest = max((cell_len(row[place]) for row in cells), default=0)
        least = widest if column.is_short else min(widest, NAME_WIDTH)
        widths.append(max(cell_len(column.heading), least))
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
