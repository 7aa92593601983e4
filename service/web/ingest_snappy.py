"""Unpacks Snappy's block format, in which Promtail and Grafana Alloy send.

A block is its length when unpacked, then literals and copies of what came before.
Source: google/snappy, format_description.txt.
"""

from __future__ import annotations

from typing import Final

LONG_LITERAL: Final = 60  # from here on a literal's length stands behind its tag
MAX_LENGTH_BYTES: Final = 5


class SnappyError(ValueError):
    """These bytes are no block, or none within the limit; it never leaves the HTTP API."""


def unsnapped(block: bytes, limit: int) -> bytes:
    """Return what a block holds.

    Raises:
        SnappyError: it is damaged.
        OverflowError: it would have more bytes than the limit.
    """
    size, place = _size(block)
    if size > limit:
        raise OverflowError(size)
    made = bytearray()
    while place < len(block):
        element = _literal if block[place] & 3 == 0 else _copy
        place = element(block, place, made)
        if len(made) > size:
            raise SnappyError("more than its length")
    if len(made) != size:
        raise SnappyError("less than its length")
    return bytes(made)


def _size(block: bytes) -> tuple[int, int]:
    """Return the length that a block begins with, seven bits a byte, and where the rest begins."""
    size = 0
    for place, byte in enumerate(block[:MAX_LENGTH_BYTES]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size, place + 1
    raise SnappyError("no length")


def _literal(block: bytes, place: int, made: bytearray) -> int:
    length, place = block[place] >> 2, place + 1
    if length >= LONG_LITERAL:
        width = length - LONG_LITERAL + 1
        length = _number(block, place, width)
        place += width
    end = place + length + 1
    if end > len(block):
        raise SnappyError("a literal ends too early")
    made += block[place:end]
    return end


def _copy(block: bytes, place: int, made: bytearray) -> int:
    """Append some of what was made before; a copy may reach into itself."""
    tag, place = block[place], place + 1
    width = (1, 2, 4)[(tag & 3) - 1]
    offset = _number(block, place, width)
    length = (tag >> 2) + 1
    if width == 1:
        offset, length = offset | (tag >> 5) << 8, (tag >> 2 & 7) + 4
    if not 0 < offset <= len(made):
        raise SnappyError("a copy from before the beginning")
    start = len(made) - offset
    piece = made[start : start + length]
    made += (piece * (length // len(piece) + 1))[:length]
    return place + width


def _number(block: bytes, place: int, width: int) -> int:
    if place + width > len(block):
        raise SnappyError("an element ends too early")
    return int.from_bytes(block[place : place + width], "little")
