"""Names of others on a person's terminal: an invisible character is shown as its number.

A transactional id, a group or an error text may hold anything: an escape sequence would clear the
screen, a line feed would fake a row, a right-to-left mark would reverse a line.
"""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """Return the text with each control character, separator or lone surrogate as JSON writes it."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
