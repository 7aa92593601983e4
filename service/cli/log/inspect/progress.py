"""How much of the segments was read, on stderr while it is a terminal."""

from __future__ import annotations

import sys
from typing import Final, Self

import click

from service.cli.sequence.reading import CLEAR, EVERY_SECONDS
from service.runtime import clock

MEGABYTE: Final = 1_000_000


class Progress:
    """Prints now and then how many bytes were read, and clears the line at the end."""

    def __init__(self, total: int) -> None:
        """`total` is in bytes."""
        self._total = total
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._printed_at = clock.monotonic()  # what is read at once shows nothing
        self._has_printed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._has_printed:
            click.echo(CLEAR, err=True, nl=False)

    def show(self, done: int) -> None:
        """Say that so many bytes were read."""
        if not self._is_shown or clock.monotonic() - self._printed_at < EVERY_SECONDS:
            return
        text = f"{CLEAR}{done / MEGABYTE:,.0f} of {self._total / MEGABYTE:,.0f} MB"
        click.echo(text, err=True, nl=False)
        self._printed_at, self._has_printed = clock.monotonic(), True
