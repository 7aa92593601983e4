"""A position in the body of an answer of a flexible version (KIP-482)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")
MAX_UVARINT_BYTES: Final = 5  # of a number of 32 bits, as all lengths and counts are
INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")
# What the standard library raises over bytes that end early, are no UTF-8, or hold too large a number.
MALFORMED: Final = (struct.error, IndexError, UnicodeDecodeError, OverflowError)


def uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned number of variable length; return it with the position behind it.

    Raises:
        IndexError: the data ends before it.
        OverflowError: it has more than 32 bits.
    """
    value = data[position]
    if value < 0x80:  # nearly always
        return value, position + 1
    value &= 0x7F
    for count in range(1, MAX_UVARINT_BYTES):
        byte = data[position + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    raise OverflowError("a number has more than 32 bits")


def sliced(data: bytes, position: int, length: int) -> bytes:
    """Return so many bytes from a position on.

    Raises:
        IndexError: the data ends before them, or the length is below 0.
    """
    end = position + length
    if length < 0 or end > len(data):
        raise IndexError("ends early")
    return data[position:end]


def encode_uvarint(value: int) -> bytes:
    """Return an unsigned number of variable length."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Cursor:
    """Every method reads one thing and moves on, or raises the error that the cursor was given."""

    __slots__ = ("_body", "error", "position")

    def __init__(self, body: bytes | bytearray, position: int, error: type[Exception]) -> None:
        self._body = memoryview(body)
        self.position = position  # of the next byte
        self.error = error

    def take(self, count: int) -> memoryview:
        """Read so many bytes."""
        end = self.position + count
        if end > len(self._body):
            raise self.error("the answer ends early")
        taken = self._body[self.position : end]
        self.position = end
        return taken

    def int16(self) -> int:
        """Read a number of two bytes."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Read a number of four bytes."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def uvarint(self) -> int:
        """Read an unsigned number of variable length."""
        try:
            value, self.position = uvarint(self._body, self.position)
        except IndexError as exc:
            raise self.error("the answer ends early") from exc
        except OverflowError as exc:
            raise self.error(str(exc)) from exc
        return value

    def length(self) -> int:
        """Read the length of a text or an array; none at all counts as empty."""
        return max(self.uvarint() - 1, 0)

    def text(self) -> str:
        """Read a text."""
        try:
            return str(self.take(self.length()), "utf-8")
        except UnicodeDecodeError as exc:
            raise self.error("the answer has a name that is no text") from exc

    def array(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        """Read an array, item by item."""
        return tuple(read() for _ in range(self.length()))

    def skip_tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())
