"""Rows as a table, or as labelled lines on a screen that is too narrow for the table.

Every cell is made printable here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from service.cli.terminal.printable import printable

NAME_WIDTH: Final = 20  # the least width of a column of names, if its names are longer
GAP: Final = 2  # between two columns
LABEL_WIDTH: Final = 12


class Rows:
    """Rows under the names of their columns; no column is ever left out.

    On a screen that is too narrow for the table each row is a block of lines instead.
    """

    def __init__(self, columns: Mapping[str, bool], *, caption: str | None = None) -> None:
        """Set the columns; True: its cells are short and never folded."""
        self._columns = columns
        self._caption = caption
        self._rows: list[tuple[list[str], str | None]] = []

    def add(self, cells: Iterable[str], *, style: str | None = None) -> None:
        """Add a row; it has a cell for each column."""
        self._rows.append(([printable(cell) for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a table if it fits, else blocks of lines."""
        if self._least_width() <= options.max_width:
            yield self._table()
            return
        for cells, style in self._rows:
            yield Text(cells[0], style=style or "bold")
            yield lines(list(zip(list(self._columns)[1:], cells[1:], strict=True)))
        if self._caption is not None:
            yield Text(self._caption)

    def _least_width(self) -> int:
        widths = []
        for place, (name, is_short) in enumerate(self._columns.items()):
            widest = max((cell_len(cells[place]) for cells, _ in self._rows), default=0)
            widths.append(max(cell_len(name), widest if is_short else min(widest, NAME_WIDTH)))
        return sum(widths) + GAP * (len(widths) - 1)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", caption_justify="left")
        table.caption = self._caption
        for name, is_short in self._columns.items():
            table.add_column(name, overflow="fold", no_wrap=is_short)
        for cells, style in self._rows:
            table.add_row(*map(Text, cells), style=style)
        return table


def lines(pairs: Sequence[tuple[str, str | None]]) -> Text:
    """Return labels and values in lines; None is left out."""
    shown = [(name, printable(value)) for name, value in pairs if value is not None]
    width = max([LABEL_WIDTH, *(len(name) + 1 for name, _ in shown)])
    return Text("\n".join(f"  {name:<{width}} {value}" for name, value in shown))
