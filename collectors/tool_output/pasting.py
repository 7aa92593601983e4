"""Take lines of a tool's output out of what a ticket or a terminal put around them, without changing what they say.

Quotes and indents are removed. Where a long line was wrapped, at words or inside of them, its parts are read as one
without any white space: the names of Kafka's fields still separate the values.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTES: Final = re.compile(r"[\s\ufeff]*(?:(?:>|&gt;)\s?)+(?=[^>]|$)")
_FENCE: Final = re.compile(
    r"(?:```|~~~)[\w-]{0,20}|\{(?:code|noformat)(?::[^}]{0,40})?\}|</?(?:pre|code)>"
)


def unquote(line: bytes) -> str:
    """Return a line without the marks of a quotation and without the white space at its ends."""
    text = line.decode(errors="replace")
    match = _QUOTES.match(text)
    return (text if match is None else text[match.end() :]).strip()


def is_fence(text: str) -> bool:
    """Whether a line only begins or ends a block of code."""
    return _FENCE.fullmatch(text) is not None


def squash(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def number(text: str | None) -> int | None:
    """Return a number; None for Kafka's words and numbers that stand for none."""
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return None if value < 0 else value
