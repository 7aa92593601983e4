"""Join log records that a terminal, an email or a chat has wrapped over several lines.

Only pasted text is wrapped, and it is short: a log of megabytes is left as it is. A record counts as
wrapped if its words continue after the end of a line and it can be parsed when the lines are joined; any
other record is left as it is, and the parser counts it as unreadable.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import accumulate, product
from typing import Final

from collectors.broker_log.parser import MARKS, LineParser
from collectors.broker_log.parser_state import decode_state

MOST_BYTES: Final = 1_000_000  # of a text
MOST_TRIED: Final = 20_000  # ways to join lines, in one text: a second or two
MOST_LINES: Final = 12  # of one record
MIXED: Final = 6  # ends of lines up to which each may stand for a space or for nothing

_SPACE: Final = re.compile(rb"\s+")
# The start of another record, which must not be joined.
_BEGINS: Final = re.compile(rb"\s*(?:\[?\d{4}-\d\d-\d\d[ T]\d|org\.apache\.|\tat |Caused by: )")
_LOGGER: Final = re.compile(rb"\([\w.]{1,100}\)\s*$")  # ends a line of a broker, except exceptions


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The lines of a text, and how many of its records were wrapped."""

    lines: list[bytes]
    records: int


def unwrap(lines: list[bytes]) -> Unwrapped:
    """Return lines with wrapped records each on one line; the others as they are."""
    if sum(map(len, lines)) > MOST_BYTES:
        return Unwrapped(lines, 0)
    put, done, records, tries = list[bytes](), 0, 0, _Tries(lines)
    for first in _suspects(lines):
        if first < done or (whole := tries.whole(first)) is None:
            continue
        record, after = whole
        put += [*lines[done:first], record]
        done, records = after, records + 1
    return Unwrapped([*put, *lines[done:]], records)


def _suspects(lines: Sequence[bytes]) -> list[int]:
    """Return the numbers of the lines in which a record may begin, in order.

    It begins where its words begin, or one line before, where only the time and the class are.
    """
    bare = [_SPACE.sub(b"", line) for line in lines]
    text, starts = b"".join(bare), [0, *accumulate(map(len, bare))][:-1]
    word_lines: set[int] = set()
    for mark in MARKS:
        word_lines.update(_places(text, _SPACE.sub(b"", mark), starts))
    heads = {line - 1 for line in word_lines if line and _is_head(lines[line - 1], lines[line])}
    return sorted(word_lines | heads)


def _is_head(before: bytes, line: bytes) -> bool:
    """Whether a line is the head of the record in the next line."""
    is_begun = before.startswith(b"[") and _BEGINS.match(before) is not None
    return is_begun and not _BEGINS.match(line) and not _LOGGER.search(before)


def _places(text: bytes, mark: bytes, starts: Sequence[int]) -> Iterator[int]:
    place = text.find(mark)
    while place >= 0:
        yield bisect_right(starts, place) - 1
        place = text.find(mark, place + len(mark))


class _Tries:
    """Joins lines until they can be parsed, with a limit of tries per text."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._width = max(map(len, lines), default=0)
        self._left = MOST_TRIED

    def whole(self, first: int) -> tuple[bytes, int] | None:
        """Return a record with the lines that belong to it, and the line after it.

        None: it is on one line, or there is none.
        """
        lines = self._lines
        if self._left <= 0 or self._is_whole(lines[first]):
            return None
        for end in range(first + 2, min(first + MOST_LINES, len(lines)) + 1):
            if _BEGINS.match(lines[end - 1]) or self._left <= 0:
                return None
            for record in _join_lines(lines[first:end], self._width):
                if self._is_whole(record):
                    return record, end
        return None

    def _is_whole(self, line: bytes) -> bool:
        """Whether a line can be parsed; the first of two lines also counts if its end is complete."""
        self._left -= 1
        parser = LineParser("", None, UTC)
        if parser.feed([line]):
            return True
        first = decode_state(parser.state())
        return first is not None and first.name is not None and _LOGGER.search(line) is not None


def _join_lines(lines: Sequence[bytes], width: int) -> Iterator[bytes]:
    """Yield the joined lines, the likeliest way first: a space may be missing where a line ends."""
    ends = len(lines) - 1
    likely = _likely(lines[:-1], width)
    ways = product((b"", b" "), repeat=ends) if ends <= MIXED else [likely]

    def differences(way: Sequence[bytes]) -> int:
        return sum(filler != other for filler, other in zip(way, likely, strict=True))

    for filling in sorted(ways, key=differences):
        yield b"".join(part for pair in zip(lines, (*filling, b""), strict=True) for part in pair)


def _likely(lines: Sequence[bytes], width: int) -> tuple[bytes, ...]:
    """Return what was between lines: a terminal cuts at its width, an email at spaces."""
    is_cut = all(len(line) >= width - 1 for line in lines)
    return tuple(
        b"" if is_cut and len(line) == width and not line.endswith((b",", b":")) else b" "
        for line in lines
    )
