"""The option `-o`, the option `--no-color`, and when output has colours; imports nothing heavy.

A command decides between two things only: its document ("json"), or what a person reads ("table"). How
either is written is decided here and in `answer.py` and `screen.py`, so that a command which has `-o` has every
format: yaml is the document, wide and tsv are the parts. `no-color.org` and `force-color.org` are the source of
the rules of colours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

import click

Command = Callable[..., Any]

CHOSEN: Final = "tidemark.output"  # keys of a context's meta
COLOURLESS: Final = "tidemark.no_color"


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    TSV = "tsv"


DRAWN: Final = {  # what a command has to make for it
    Format.WIDE: Format.TABLE,
    Format.YAML: Format.JSON,
    Format.TSV: Format.TABLE,
}
HELP: Final = (
    "table or wide (nothing folded) for people, json, yaml or tsv (tab-separated) for programs."
)


class Stream(Protocol):
    """A stream of text."""

    def isatty(self) -> bool:
        """Return whether it is a terminal."""


def output_option(function: Command) -> Command:
    """Add `-o table|wide|json|yaml|tsv`, given to the command as `output`: "table" or "json"."""
    return output_option_with()(function)


def output_option_with(*others: str, of: str = HELP) -> Callable[[Command], Command]:
    """Return a decorator that adds `-o` with formats that only this command has."""

    def add(function: Command) -> Command:
        option = click.option(
            "-o", "--output", type=click.Choice([*(each.value for each in Format), *others]), default=Format.TABLE.value,
            show_default=True, callback=_choose, metavar="FORMAT",
            help=f"{of}" + (f" Also: {', '.join(others)}." if others else ""),
        )  # fmt: skip
        return option(no_color_option(function))

    return add


def no_color_option(function: Command) -> Command:
    """Add `--no-color`, which the command does not see."""
    return click.option(
        "--no-color", is_flag=True, expose_value=False, callback=_forbid_colours,
        help="No colours; as NO_COLOR in the environment.",
    )(function)  # fmt: skip


def chosen_format() -> Format:
    """Return the format that the running command's `-o` chose; a table if it has no such option."""
    ctx = click.get_current_context(silent=True)
    return Format.TABLE if ctx is None else ctx.meta.get(CHOSEN, Format.TABLE)


def is_screen() -> bool:
    """Return whether standard output is a terminal: a person reads it, and it has a width."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_limited() -> bool:
    """Return whether what is more than a person reads is left out: on a terminal, and with -o table alone."""
    return is_screen() and chosen_format() is Format.TABLE


def is_interactive() -> bool:
    """Return whether a person types and reads: on terminals, and in a format for people."""
    has_keys = sys.stdin is not None and sys.stdin.isatty()
    return has_keys and is_screen() and chosen_format() in (Format.TABLE, Format.WIDE)


def has_colours(stream: Stream, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether what is written to a stream may have colours.

    --no-color and NO_COLOR forbid them, FORCE_COLOR asks for them, TERM=dumb or a pipe has none.
    """
    ctx = click.get_current_context(silent=True)
    if environment.get("NO_COLOR") or (ctx is not None and ctx.meta.get(COLOURLESS)):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environment.get("TERM", "") not in ("dumb", "unknown")


def _choose(ctx: click.Context, param: click.Parameter, value: str) -> str:
    del param
    if value not in set(Format):
        return value
    ctx.meta[CHOSEN] = Format(value)
    return DRAWN.get(Format(value), Format(value)).value


def _forbid_colours(ctx: click.Context, param: click.Parameter, *values: bool) -> None:
    del param
    if any(values):
        ctx.meta[COLOURLESS] = True
