"""Cuts bytes into lines, without holding more of a line than its first megabyte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_LINE: Final = 1 << 20  # bytes; Kafka's longest lines, with a stack trace in them, have some kB
NEWLINE: Final = b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What came of a piece of a file."""

    lines: list[bytes]  # without their ends
    consumed: int  # bytes of the piece that need not be read again
    lost: int = 0  # of these, bytes of a line beyond its first megabyte
    is_skipping: bool = False  # the next piece goes on with the rest of such a line


def cut(piece: bytes, *, is_skipping: bool) -> Cut:
    """Return the whole lines of a piece of up to `MAX_LINE` bytes; a begun one is left.

    Only a begun line that fills the whole piece is taken as it is, and its rest is skipped.
    """
    begin = lost = 0
    if is_skipping:
        lost = piece.find(NEWLINE)
        if lost < 0:
            return Cut(lines=[], consumed=len(piece), lost=len(piece), is_skipping=True)
        begin = lost + 1
    end = piece.rfind(NEWLINE, begin)
    if end >= 0:
        return Cut(lines=piece[begin:end].split(NEWLINE), consumed=end + 1, lost=lost)
    if len(piece) - begin < MAX_LINE:
        return Cut(lines=[], consumed=begin, lost=lost)
    return Cut(lines=[piece], consumed=len(piece), is_skipping=True)
