"""Durations, times and groups as text for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from rules.facts.transactions import NO_TIMEOUT
from rules.loss.summary import offsets
from rules.transactions.blocked import BlockedGroup
from service.cli.terminal.showing import ABSENT

UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60))
NAMED: Final = 3


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


def timeout(value: timedelta | None) -> str:
    """Return the timeout of a transaction."""
    return "none" if value is not None and value >= NO_TIMEOUT else duration(value)


def timestamp(value: datetime | None) -> str:
    """Return a time to the second; it is UTC."""
    return ABSENT if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    first = ", ".join(names[:NAMED])
    return first if len(names) <= NAMED else f"{first} and {len(names) - NAMED} more"


def groups(blocked: Sequence[BlockedGroup] | None) -> str:
    """Return the groups that a transaction blocks: those that wait for it, then those that will."""
    if blocked is None:
        return "not known"
    return few([_group(group) for group in blocked]) or "no group"


def _group(group: BlockedGroup) -> str:
    if group.is_waiting:
        return f"{group.group_id} (waits)"
    return f"{group.group_id} ({offsets(group.lag_before_transaction)} before it)"
