"""Removes old days of history, with their masks.

Baseline runs are not removed here: the next one continues the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final

from rules.baseline.layout import DAYS, MASKS
from service.history.folder import Folder

PREFIX: Final = "day="


def remove_old(folder: Folder, first: date, is_over: Callable[[], bool]) -> int:
    """Remove the days before `first`; return how many had samples.

    Raises:
        StoreError: the folder is away.
    """
    removed = 0
    for kind in (MASKS, DAYS):
        for name in folder.names(kind):
            day = _day(name)
            if day is not None and day < first and not is_over():
                folder.remove_folder(f"{kind}/{name}")
                removed += kind == DAYS
    return removed


def _day(name: str) -> date | None:
    try:
        return date.fromisoformat(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    except ValueError:
        return None
