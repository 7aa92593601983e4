"""Prints the answer of a command: a document for programs, or parts and columns for a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from service.terminal.formats import Format, chosen_format, has_colours, is_limited
from service.terminal.parts import SHOWN, Part, Table
from service.terminal.words import tab_separated


def print_json(document: object, *, indent: int | None = None) -> None:
    """Print a document: as one line of JSON unless it is to be indented, or as YAML if `-o yaml` says so.

    Several documents of one command are lines of JSON, or documents of a YAML stream.
    """
    text = json_text(document, indent)
    click.echo(_yaml(text) if chosen_format() is Format.YAML else text, nl=True)


def json_text(document: object, indent: int | None) -> str:
    """Return a document as JSON; tests hold here what every command prints against its schema."""
    separators = (",", ":") if indent is None else None
    return json.dumps(document, separators=separators, indent=indent)


def print_answer(document: object, parts: Iterable[Part], options: Mapping[str, Any]) -> None:
    """Print a document, or its parts, as the option --output says."""
    if options["output"] == "json":
        print_json(document)
        return
    print_parts(parts)


def print_parts(parts: Iterable[Part]) -> None:
    """Print parts below each other, or separated by tabs; only on a screen are rows left out."""
    from service.terminal import plain, separated  # noqa: PLC0415 - keeps `--help` fast

    if chosen_format() is Format.TSV:
        separated.print_separated(parts)
        return
    is_wide = chosen_format() is Format.WIDE
    is_coloured = sys.stdout is not None and has_colours(sys.stdout)
    has_limit = is_limited()
    width = plain.WIDE if is_wide else plain.screen_width()
    for part in parts:
        most = SHOWN if has_limit or not isinstance(part, Table) else len(part.rows)
        drawn = plain.draw(part, width=width, most=most, is_coloured=is_coloured)
        if drawn is None:
            from service.terminal import screen  # noqa: PLC0415 - 40 ms, and seldom needed

            screen.print_parts([part], screen.console(), most)
        else:
            click.echo(drawn, color=True)  # whether it has colours is decided above


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print texts in columns that are as wide as their widest text, or separated by tabs."""
    if chosen_format() is Format.TSV:
        for row in rows:
            click.echo(tab_separated(row))
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _yaml(text: str) -> str:
    import yaml  # noqa: PLC0415 - 20 ms, and rarely needed

    # Read back, a document has only what YAML has too: no enumeration, no tuple.
    dumped: str = yaml.safe_dump(
        json.loads(text), sort_keys=False, allow_unicode=True, explicit_start=True, width=240
    )
    return dumped.rstrip("\n")
