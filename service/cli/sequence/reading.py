"""Log lines from a file or a pipe, as a stream: it may have three lines or a day's log.

Only bytes are read here: a log may be in any encoding, and a file may be anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from collectors.broker_log.files import packing_of

MAX_LINE: Final = 1_000_000  # bytes; the rest of a longer line is read and left out
BATCH: Final = 10_000  # lines per batch
STANDARD_INPUT: Final = "-"

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


def batches(stream: BinaryIO, name: str) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in batches, without line ends.

    Raises:
        UnusableInputError: it is of another kind, or cannot be read to its end.
    """
    batch: list[bytes] = []
    is_first = True
    for line in _lines(stream, name):
        if is_first:
            _check(line, name)
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
            if not line.endswith(b"\n") and len(line) == MAX_LINE:
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
    kind = packing_of(line)
    if kind is not None:
        file = "" if name == STANDARD_INPUT else f" {shlex.quote(name)}"
        message = f"{name} is {kind}: {TOOLS[kind]}{file} | tidemark sequence explain -"
        raise UnusableInputError(message)
