"""Values of JSON, durations and times as text for a person; imports nothing heavy.

A transactional id, a group or an error text may hold anything: an escape sequence would clear the
screen, a line feed would fake a row, a right-to-left mark would reverse a line. So whatever is printed
is made printable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from service.terminal.formats import is_limited

ABSENT: Final = "-"  # a value that is unknown or absent
UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60))
NAMED: Final = 3


def printable(text: str) -> str:
    """Return the text with each control character, separator or lone surrogate as JSON writes it."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def tab_separated(cells: Sequence[str]) -> str:
    """Return a row of a table for programs; no cell can fake another, because tabs in it are escaped."""
    return "\t".join(map(printable, cells))


def text(value: object) -> str:
    """Return a value as text, a dash if there is none."""
    return ABSENT if value is None or value == "" else str(value)


def in_words(value: Any) -> str | None:
    """Return evidence of any version as text, without braces and brackets; None for nothing."""
    if value in (None, [], {}):
        return None
    match value:
        case dict():
            pairs = ((name, in_words(item)) for name, item in value.items())
            return ", ".join(f"{name} {text}" for name, text in pairs if text is not None)
        case list():
            return "; ".join(text for item in value if (text := in_words(item)) is not None)
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def duration(value: timedelta | None) -> str:
    """Return a duration in its two largest units, "3 h 5 min"; milliseconds below a second.

    A negative one is shown as absent: two clocks differ.
    """
    if value is None or value < timedelta(0):
        return ABSENT
    if value < timedelta(seconds=1):
        return f"{value // timedelta(milliseconds=1)} ms"
    left = value // timedelta(seconds=1)
    parts: list[str] = []
    for unit, seconds in UNITS:
        count, left = divmod(left, seconds)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    parts.append(f"{left} s" if left or not parts else "")
    return " ".join(part for part in parts[:2] if part)


def ago(value: timedelta) -> str:
    """Return how long ago a time is that another clock recorded."""
    return "in the future" if value < timedelta(0) else f"{duration(value)} ago"


def timestamp(value: datetime | None) -> str:
    """Return a time to the second; it is UTC."""
    return ABSENT if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def timestamp_of(value: object) -> datetime | None:
    """Read a time of the API, which is UTC."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def json_time(value: datetime | None) -> str | None:
    """Return a time as JSON has it; it is UTC."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")


def utc(value: object, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time of the API for a column whose heading says UTC; to the second."""
    at = timestamp_of(value)
    return ABSENT if at is None else f"{at:{form}}"


def time(value: object) -> str | None:
    """Return a time of the API with its zone, None if there is none."""
    at = timestamp_of(value)
    return None if at is None else timestamp(at)


def names_text(names: Sequence[str], *, unnamed: int = 0) -> str:
    """Return names as a cell: on a terminal the first, elsewhere all; of the `unnamed` only the number is known."""
    shown = names[:NAMED] if is_limited() else names
    more = len(names) - len(shown) + unnamed
    return " and ".join(part for part in (", ".join(shown), more and f"{more} more") if part)


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    first = ", ".join(names[:NAMED])
    return first if len(names) <= NAMED else f"{first} and {len(names) - NAMED} more"
