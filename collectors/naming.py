"""Short texts for gaps that name many things, and the things themselves in groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

NAMED: Final = 3  # the first few names are enough to recognise what is meant


def listed(names: Sequence[str]) -> str:
    """Return a short enumeration: all names of a few, the first ones and a count of many."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def summarize(names: Sequence[str], noun: str) -> str:
    """Return how many there are, and which: `2 partitions (a-0, a-1)`."""
    return f"{counted(len(names), noun)} ({listed(names)})"


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key; keys and values keep their order."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def chunks(values: Sequence[_Value], most: int) -> list[Sequence[_Value]]:
    """Return the values in runs of up to `most`."""
    return [values[start : start + most] for start in range(0, len(values), most)]
