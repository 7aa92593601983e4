"""What is changed in the body of an answer before the codec reads it.

Only what a newer broker added has to go, so that nearly every body is returned as it is.
"""

from __future__ import annotations

from collectors.wire.cursor import encode_uvarint


class Edits:
    """Ranges of a body that are removed or get other bytes, in their order."""

    __slots__ = ("_edits",)

    def __init__(self) -> None:
        self._edits: list[tuple[int, int, bytes]] = []  # begin, end, what takes the place

    @property
    def count(self) -> int:
        """How many there are so far: a place for `replace_number` and `removed_since`."""
        return len(self._edits)

    def remove(self, begin: int, end: int) -> None:
        """Remove bytes, behind all that is changed so far."""
        # Many neighbours cost as much as one.
        if self._edits and self._edits[-1][1:] == (begin, b""):
            begin = self._edits.pop()[0]
        self._edits.append((begin, end, b""))

    def replace(self, begin: int, end: int, by: bytes) -> None:
        """Replace bytes, behind all that is changed so far."""
        self._edits.append((begin, end, by))

    def replace_number(self, begin: int, end: int, number: int, *, at: int) -> None:
        """Replace a number of variable length that stands before what was changed since `at`."""
        self._edits.insert(at, (begin, end, encode_uvarint(number)))

    def removed_since(self, first: int) -> int:
        """Return by how many bytes the body becomes shorter by all from the place `first` on."""
        return sum(end - begin - len(by) for begin, end, by in self._edits[first:])

    def apply(self, body: bytes) -> bytes:
        """Return a body with all changes."""
        if not self._edits:
            return body
        parts: list[bytes] = []
        position = 0
        for begin, end, by in self._edits:
            parts += [body[position:begin], by]
            position = end
        return b"".join([*parts, body[position:]])
