"""Prints what commands show as rows for programs, separated by tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from service.terminal.parts import Facts, Line, Part, Table
from service.terminal.words import ABSENT, printable, tab_separated


def print_separated(parts: Iterable[Part]) -> None:
    """Print tables and facts separated by tabs; what is said besides goes to stderr."""
    shown = []
    for part in parts:
        if isinstance(part, Line):
            words = (part.words,) if isinstance(part.words, str) else part.words
            plain = "".join(word if isinstance(word, str) else word[0] for word in words)
            click.echo(printable(plain).rstrip(), err=True)
        else:
            shown.append(_rows(part))
    print_rows(shown)


def print_rows(tables: Iterable[Iterable[Sequence[str]]]) -> None:
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
