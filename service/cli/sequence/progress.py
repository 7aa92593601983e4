"""How far a long text is read, for whoever waits at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

import click

from service.runtime import clock

EVERY_SECONDS: Final = 0.5
MEGABYTE: Final = 1_000_000
CLEAR: Final = "\r\x1b[K"


class Progress:
    """Counts lines and bytes on a line of stderr that is gone in the end; elsewhere nothing."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._told_at = clock.monotonic()  # what is done soon needs no count
        self._has_told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_told:
            click.echo(CLEAR, err=True, nl=False)

    def over(self, batches: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        """Give what is given, and tell now and then how much that was."""
        if not self._is_shown:
            yield from batches
            return
        lines = size = 0
        for batch in batches:
            yield batch
            lines += len(batch)
            size += sum(map(len, batch)) + len(batch)
            self._tell(lines, size)

    def _tell(self, lines: int, size: int) -> None:
        now = clock.monotonic()
        if now - self._told_at < EVERY_SECONDS:
            return
        told = f"{lines:,} lines, {size / MEGABYTE:,.0f} MB"
        click.echo(f"{CLEAR}{told}", err=True, nl=False)
        self._told_at, self._has_told = now, True
