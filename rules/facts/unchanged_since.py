"""Since when a value is unchanged although it should advance.

What a round did not see keeps its older state: an unknown value, or an unknown span behind it, neither
begins nor ends the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Table


@dataclass(frozen=True, slots=True, eq=False)
class UnchangedSince(Table):
    """Values, and since when each is unchanged while it should have advanced.

    `since_us` is absent where the value need not advance: it is not behind.
    """

    values: Column
    since_us: Column  # microseconds since 1970-01-01 UTC

    @classmethod
    def absent(cls, rows: int) -> UnchangedSince:
        """Return rows of which nothing is known."""
        return cls(Column.absent(rows), Column.absent(rows))

    def with_times(self, change: Callable[[Int64s], Int64s]) -> UnchangedSince:
        """Return the state with its times changed."""
        return UnchangedSince(self.values, self.since_us.changed(change))

    def padded(self, rows: int) -> UnchangedSince:
        """Return `rows` rows, of which nothing is known behind the ones that are here."""
        return UnchangedSince(self.values.padded(rows), self.since_us.padded(rows))


def advance_unchanged(
    values: Column, span: Column, now_us: int, old: UnchangedSince
) -> UnchangedSince:
    """Return the state one observation later; `span` is by how much the value is behind.

    The time is kept where the value is the same and still behind, and where it is the same and the span
    is not known: a partial answer neither begins nor ends it.
    """
    same = values.valid & old.values.valid & (values.values == old.values.values)
    waits = span.valid & (span.values > 0)
    goes_on = same & (waits | ~span.valid) & old.since_us.valid
    begins = values.valid & waits & ~goes_on
    unseen = ~values.valid
    since = np.where(begins, now_us, old.since_us.values)
    unchanged = goes_on | begins | (unseen & old.since_us.valid)
    return UnchangedSince(
        either(unseen, old.values, values),
        Column(np.where(unchanged, since, 0), unchanged),
    )


def keep_earlier(seen: UnchangedSince, stored: UnchangedSince) -> UnchangedSince:
    """Return the earlier time where a value is the same, and the stored state where none was seen."""
    is_same = seen.values.valid & stored.values.valid
    is_same &= seen.values.values == stored.values.values
    both = is_same & seen.since_us.valid & stored.since_us.valid
    unseen = ~seen.values.valid
    since = np.where(
        both, np.minimum(seen.since_us.values, stored.since_us.values), seen.since_us.values
    )
    return UnchangedSince(
        either(unseen, stored.values, seen.values),
        either(unseen, stored.since_us, Column(since, seen.since_us.valid)),
    )


def either(mask: Bools, there: Column, otherwise: Column) -> Column:
    """Return the values of `there` where `mask` is True, and those of `otherwise` elsewhere."""
    return Column(
        np.where(mask, there.values, otherwise.values), np.where(mask, there.valid, otherwise.valid)
    )
