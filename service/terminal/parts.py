"""What commands print for a person, as data: lines, labelled values and tables.

`terminal/screen.py` draws them. Nothing here imports rich, so that `--help` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from service.terminal.words import text, utc

SHOWN: Final = 200  # rows of a table: on a terminal, more than a person reads; a pipe has all
LABEL_WIDTH: Final = 12
FOLDED_WIDTH: Final = 80 - LABEL_WIDTH - 4  # of sentences beside labels, on a terminal
NAME_WIDTH: Final = 20  # most names are whole in it
NARROW_WIDTH: Final = 10  # of columns whose cells have several words, or numbers

Row = Mapping[str, Any]  # JSON of a Tidemark of any version: fields may be absent
Words: TypeAlias = str | tuple[str, str]  # a text, or one with its style
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, never folded, so that commands can be copied."""

    words: str | Sequence[Words]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and values in lines; None is left out."""

    pairs: Sequence[tuple[str, object]]
    label_width: int = LABEL_WIDTH  # at least


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """A heading, and the cell of each row below it."""

    heading: str
    cell: Callable[[RowT], str]
    is_short: bool = False  # its cells are never folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[RowT]):
    """Rows under the headings of their columns; no column is ever left out.

    On a screen that is too narrow for the table each row is a block of lines instead.
    """

    columns: Sequence[Column[RowT]]
    rows: Sequence[RowT]  # on a terminal the first `SHOWN` are drawn
    style: Callable[[RowT], str | None] = lambda _: None
    caption: str | None = None  # default: how many rows are not drawn
    folded_width: int = (
        NAME_WIDTH  # the least of a column that may be folded, if its cells are wider
    )


Part: TypeAlias = Line | Facts | Table[Any]


def short(heading: str, value: str | Callable[[Row], str] | None = None) -> Column[Row]:
    """Return a column of JSON rows whose cells are never folded; `value` is a field or a function."""
    return Column(heading, _cell(heading if value is None else value), is_short=True)


def long(heading: str, value: str | Callable[[Row], str] | None = None) -> Column[Row]:
    """Return a column of JSON rows whose cells may be folded; `value` as above."""
    return Column(heading, _cell(heading if value is None else value))


def time_column(heading: str, *fields: str) -> Column[Row]:
    """Return a column of times: of the first field that has one."""

    def cell(row: Row) -> str:
        return utc(next((row[name] for name in fields if row.get(name)), None))

    return Column(f"{heading} (UTC)", cell, is_short=True)


def not_seen(lines: Iterable[str]) -> Iterable[Line]:
    """Yield what an answer lacks below a heading; nothing if it lacks nothing."""
    shown = [Line(f"  {line}") for line in lines]
    return [Line("NOT SEEN"), *shown] if shown else []


def _cell(value: str | Callable[[Row], str]) -> Callable[[Row], str]:
    return (lambda row: text(row.get(value))) if isinstance(value, str) else value
