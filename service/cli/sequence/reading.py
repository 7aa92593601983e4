"""Log lines from a file or a pipe, as a stream: it may have three lines or a day's log.

Only bytes are read here: a log may be in any encoding, and a file may be anything.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

import click

from collectors.broker_log.files import packing_of
from service.runtime import clock

MAX_LINE: Final = 1_000_000  # bytes; the rest of a longer line is read and left out
# Between documents that Kafka's formatter of the transaction log prints without an end of line: such a line goes on.
DOCUMENTS: Final = b'}{"key":'
BATCH: Final = 10_000  # lines per batch
STANDARD_INPUT: Final = "-"
EVERY_SECONDS: Final = 0.5
MEGABYTE: Final = 1_000_000
CLEAR: Final = "\r\x1b[K"

# The command that prints the text of a file of another kind.
TOOLS: Final = {
    "compressed with gzip": "zcat",
    "compressed with zstd": "zstdcat",
    "compressed with bzip2": "bzcat",
    "compressed with xz": "xzcat",
    "compressed with lz4": "lz4cat",
    "compressed with compress": "zcat",
    "a zip archive": "unzip -p",
    "UTF-16 text": "iconv -f UTF-16 -t UTF-8",
}


class UnusableInputError(Exception):
    """The input is no text of lines; the message says what to do. It never leaves the command."""


def open_log(path: Path) -> BinaryIO:
    """Open a file.

    Raises:
        UnusableInputError: it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as exc:
        raise _unreadable(str(path), exc) from exc


def batches(
    stream: BinaryIO, name: str, check: Callable[[bytes, str], None] | None = None
) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in batches, without line ends; `check` sees the first one.

    Raises:
        UnusableInputError: it is of another kind, or cannot be read to its end.
    """
    batch: list[bytes] = []
    is_first = True
    for line in _lines(stream, name):
        if is_first:
            (check or _check)(line, name)
            is_first = False
        batch.append(line)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        while line := stream.readline(MAX_LINE):
            if not line.endswith(b"\n") and len(line) == MAX_LINE and DOCUMENTS not in line:
                _skip_line(stream)
            yield line.rstrip(b"\r\n")
    except OSError as exc:
        raise _unreadable(name, exc) from exc


def _skip_line(stream: BinaryIO) -> None:
    while rest := stream.readline(MAX_LINE):
        if rest.endswith(b"\n"):
            return


def _unreadable(name: str, error: OSError) -> UnusableInputError:
    why = error.strerror or str(error)
    return UnusableInputError(f"{name} cannot be read: {why.lower()}")


def _check(line: bytes, name: str) -> None:
    reject(packing_of(line), name, "tidemark sequence explain -")


def reject(kind: str | None, name: str, reader: str) -> None:
    """Reject a file of a kind that is no text, with the command that gives its text to `reader`."""
    if kind is not None:
        file = "" if name == STANDARD_INPUT else f" {shlex.quote(name)}"
        raise UnusableInputError(f"{name} is {kind}: {TOOLS[kind]}{file} | {reader}")


class Progress:
    """Shows counts of lines and bytes on stderr while it is a terminal, and clears them at the end."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._printed_at = clock.monotonic()  # a short text shows no count
        self._has_printed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
