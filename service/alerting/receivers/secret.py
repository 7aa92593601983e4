"""Text that must not appear in any log line, error, stored attempt or test report."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"


class Secret:
    """Keeps a text out of everything that prints values; `reveal` is the one way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN
