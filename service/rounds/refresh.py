"""Stores now and then what moves on of open findings without a change: evidence, and when it was last a breach.

The first round after a restart judges anew; until then, and for whoever reads the database, the stored
evidence is a minute old, or older while thousands of findings are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from rules.finding_table import FindingTable
from rules.open_findings import Change, Identity

AFTER: Final = timedelta(minutes=1)  # from the begin of one pass over all findings to the next
MOST: Final = 200  # in one round: some milliseconds


class Refresh:
    """Goes over all open findings, some in each round."""

    def __init__(self) -> None:
        self._left: list[Identity] = []  # of this pass, the next one last
        self._began: datetime | None = None

    def take(self, table: FindingTable, changes: Sequence[Change], at: datetime) -> list[Change]:
        """Return the changes that store what has moved on, besides those of the round at this time."""
        if self._began is None:
            self._began = at
        if not self._left and abs(at - self._began) >= AFTER:
            self._left, self._began = list(table.moving()), at
        turn, self._left = self._left[-MOST:], self._left[:-MOST]
        stored = {change.identity for change in changes}
        moved_on = (table.repetition(identity) for identity in turn if identity not in stored)
        return [change for change in moved_on if change is not None]
