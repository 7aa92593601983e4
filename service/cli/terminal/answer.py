"""Prints the answer of a command: JSON for programs, or parts and columns for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from service.cli.terminal.parts import Part


def print_json(document: object) -> None:
    """Print a document as one line of JSON."""
    click.echo(json.dumps(document, separators=(",", ":")))


def print_answer(document: object, parts: Iterable[Part], options: Mapping[str, Any]) -> None:
    """Print a document as one line of JSON, or its parts, as the option --output says."""
    if options["output"] == "json":
        print_json(document)
        return
    from service.cli.terminal.screen import print_parts  # noqa: PLC0415 - keeps `--help` fast

    print_parts(parts)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print texts in columns that are as wide as their widest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
