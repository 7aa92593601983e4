"""Patterns for names in a query: an asterisk matches any text, every other character itself.

Regular expressions are not offered: one with catastrophic backtracking would block the event
loop, and Python cannot stop it. This search takes time in proportion to the name.
"""

from __future__ import annotations

from typing import Final

MAX_PATTERN: Final = 200  # characters


def matches(pattern: str | None, name: str) -> bool:
    """Return whether a whole name matches; no pattern matches every name."""
    if pattern is None:
        return True
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *middle, last = others
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    return name.endswith(last) and _holds(name, middle, len(first), len(name) - len(last))


def _holds(name: str, pieces: list[str], begin: int, end: int) -> bool:
    """Return whether name[begin:end] contains the pieces in order and without overlap."""
    for piece in pieces:
        position = name.find(piece, begin, end)
        if position < 0:
            return False
        begin = position + len(piece)
    return True
