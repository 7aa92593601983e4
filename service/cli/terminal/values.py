"""JSON of any version as a person reads it: values without braces, brackets and quotes."""

from __future__ import annotations

from typing import Any


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
