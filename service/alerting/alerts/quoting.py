"""Text as Go and Alertmanager print it in quotes: both are parts of group keys that others compare."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SHORT: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_ESCAPED: Final = re.compile(r'\\(["\\n])')


def quote(text: str) -> str:
    """Return text as Go's %q: what cannot be printed becomes an escape."""
    return '"' + "".join(map(_escape_character, text)) + '"'


def _escape_character(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape(text: str) -> str:
    """Return text with only backslash, quote and line end escaped, as OpenMetrics has it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def unescape(text: str) -> str:
    """Undo `escape`; any other backslash matches itself, so that patterns need it only once."""
    return _ESCAPED.sub(lambda match: "\n" if match.group(1) == "n" else match.group(1), text)


def label_set(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labels, given by name, as Prometheus' libraries print a label set."""
    return "{" + ", ".join(f"{name}={quote(value)}" for name, value in pairs) + "}"
