"""Name patterns of the API as SQL: an asterisk matches any text."""

from __future__ import annotations

from typing import Final

from service.storage.findings.findings import storable_text

ESCAPE: Final = "!"


def like_of(pattern: str) -> str:
    """Return a name pattern as a LIKE pattern with `ESCAPE`; names are stored without NUL."""
    text = pattern.replace(ESCAPE, ESCAPE * 2).replace("%", f"{ESCAPE}%").replace("_", f"{ESCAPE}_")
    return storable_text(text).replace("*", "%")
