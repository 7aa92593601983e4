"""Short texts for gaps that name many things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NAMED: Final = 3  # the first few names are enough to recognise what is meant


def listed(names: Sequence[str]) -> str:
    """Return a short enumeration: all names of a few, the first ones and a count of many."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
