"""Draws what commands print. Every cell and line is made printable here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from service.cli.terminal.formats import Format, chosen_format, has_colours
from service.cli.terminal.parts import LABEL_WIDTH, SHOWN, Facts, Line, Part, Table
from service.cli.terminal.words import ABSENT, printable, tab_separated

PIPED_WIDTH: Final = 240  # of a table in a pipe, beyond which its cells are folded, never cut
WIDE: Final = 100_000  # columns: nothing is folded
NAME_WIDTH: Final = 20  # the least width of a column of names, if its names are longer
GAP: Final = 2  # between two columns


def is_screen() -> bool:
    """Return whether standard output is a terminal: a person reads it, and it has a width."""
    return sys.stdout is not None and sys.stdout.isatty()


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


def print_parts(parts: Iterable[Part], screen: Console | None = None) -> None:
    """Print parts below each other; only tables are folded, and only on a screen are rows left out."""
    if screen is None and chosen_format() is Format.TSV:
        _print_separated(parts)
        return
    has_limit = screen is not None or (is_screen() and chosen_format() is not Format.WIDE)
    screen = screen or console()
    for part in parts:
        match part:
            case Line(words, style):
                several = (words,) if isinstance(words, str) else words
                screen.print(Text.assemble(*map(_printable, several), style=style), soft_wrap=True)
            case Facts(pairs, label_width):
                screen.print(_facts(pairs, label_width), soft_wrap=True)
            case Table():
                for content in _draw(part, screen.width, SHOWN if has_limit else len(part.rows)):
                    screen.print(content, soft_wrap=part.has_blocks)


def _printable(words: str | tuple[str, str]) -> str | tuple[str, str]:
    return printable(words) if isinstance(words, str) else (printable(words[0]), words[1])


def _facts(pairs: Iterable[tuple[str, object]], label_width: int) -> Text:
    shown = [(name, printable(str(value))) for name, value in pairs if value is not None]
    width = max([label_width, *(len(name) + 1 for name, _ in shown)])
    return Text("\n".join(f"  {name:<{width}} {value}" for name, value in shown))


def print_tables(drawn: Iterable[RenderableType], screen: Console) -> None:
    """Print what rich draws; of that, only the tables if they are to be separated by tabs."""
    if chosen_format() is not Format.TSV:
        screen.print(*drawn, sep="\n")
        return
    tables = [part for part in drawn if isinstance(part, rich_table.Table)]
    rows = ([[str(cell) for cell in row] for row in _drawn_rows(table)] for table in tables)
    _print_rows(rows)


def _drawn_rows(table: rich_table.Table) -> Iterator[Iterable[RenderableType]]:
    yield [str(column.header) for column in table.columns]
    yield from zip(*(column.cells for column in table.columns), strict=True)


def _print_separated(parts: Iterable[Part]) -> None:
    """Print tables and facts separated by tabs; what is said besides goes to stderr."""
    shown = []
    for part in parts:
        if isinstance(part, Line):
            words = (part.words,) if isinstance(part.words, str) else part.words
            plain = "".join(word if isinstance(word, str) else word[0] for word in words)
            click.echo(printable(plain).rstrip(), err=True)
        else:
            shown.append(_rows(part))
    _print_rows(shown)


def _print_rows(tables: Iterable[Iterable[Sequence[str]]]) -> None:
    """Print tables separated by tabs: a second one follows after an empty line."""
    for place, rows in enumerate(tables):
        if place:
            click.echo()
        for row in rows:
            click.echo(tab_separated(["" if cell == ABSENT else cell for cell in row]))


def _rows(part: Facts | Table[Any]) -> Iterator[Sequence[str]]:
    if isinstance(part, Facts):
        yield from ([name.strip(), str(value)] for name, value in part.pairs if value is not None)
        return
    yield [column.heading for column in part.columns]
    for row in part.rows:
        yield [column.cell(row) for column in part.columns]


def _draw(table: Table[Any], screen_width: int, most: int) -> Iterator[RenderableType]:
    """Yield a table if it fits, else blocks of lines."""
    rows = table.rows[:most]
    cells = [[printable(column.cell(row)) for column in table.columns] for row in rows]
    styles = [table.style(row) for row in rows]
    hidden = len(table.rows) - most
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
