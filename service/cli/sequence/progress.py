"""The progress of reading a long text, for a person at a terminal."""

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
    """Shows counts of lines and bytes on stderr while it is a terminal, and clears them at the end."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._printed_at = clock.monotonic()  # a short text shows no count
        self._has_printed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_printed:
            click.echo(CLEAR, err=True, nl=False)

    def over(self, batches: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        """Yield the batches, and print now and then how much was read."""
        if not self._is_shown:
            yield from batches
            return
        lines = size = 0
        for batch in batches:
            yield batch
            lines += len(batch)
            size += sum(map(len, batch)) + len(batch)
            self._print(lines, size)

    def _print(self, lines: int, size: int) -> None:
        now = clock.monotonic()
        if now - self._printed_at < EVERY_SECONDS:
            return
        count = f"{lines:,} lines, {size / MEGABYTE:,.0f} MB"
        click.echo(f"{CLEAR}{count}", err=True, nl=False)
        self._printed_at, self._has_printed = now, True
