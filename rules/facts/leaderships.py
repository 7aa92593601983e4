"""Since when each partition has had its leader epoch, and since which epoch it is watched.

A leader change that happened before Tidemark watched may have lost records: "only clean changes" holds
only from the epoch on since which the watch has had no break.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Table
from rules.facts.identity import TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaderships(Table):
    """One row per partition of `partitions`."""

    partitions: Partitions
    epoch: Column  # the latest in a leader's own answer
    since_us: Column  # when a round first saw it, microseconds since 1970-01-01 UTC
    # From this epoch on every leader change is known, and seemed clean or is remembered as unclean.
    watched_from: Column
    # From this epoch on every change was certainly clean: unclean elections were not allowed.
    clean_from: Column

    @classmethod
    def none(cls) -> Leaderships:
        """Return the memory before the first round."""
        nothing = Column.absent(0)
        return cls(
            partitions=Partitions.none(),
            epoch=nothing,
            since_us=nothing,
            watched_from=nothing,
            clean_from=nothing,
        )

    def row(self, name: TopicPartition) -> int | None:
        """Return the row of a partition, None where it is not known."""
        return self.partitions.index.row(name.topic, name.partition)

    def over(self, partitions: Partitions) -> Leaderships:
        """Return the leaderships by the rows of `partitions`."""
        if partitions is self.partitions:
            return self
        rows = matching_rows(partitions, self.partitions)
        return replace(self.take(rows), partitions=partitions)

    def with_times(self, change: Callable[[Int64s], Int64s]) -> Leaderships:
        """Return the leaderships with their times changed."""
        return replace(self, since_us=self.since_us.changed(change))


def merge_leaderships(stored: Leaderships, seen: Leaderships) -> Leaderships:
    """Merge the stored leaderships into memory.

    A change in between will be judged like any other: the last observation before it is kept.
    """
    older = stored.over(seen.partitions)
    same = older.epoch.valid & seen.epoch.valid & (older.epoch.values == seen.epoch.values)
    same |= older.epoch.valid & ~seen.epoch.valid
    is_known = seen.epoch.valid | older.epoch.valid

    def known(mask: Bools, there: Column, otherwise: Column) -> Column:
        values = np.where(mask, there.values, otherwise.values)
        return Column(np.where(is_known, values, 0), is_known)

    watched, clean = older.watched_from, older.clean_from
    return replace(
        seen,
        epoch=known(seen.epoch.valid, seen.epoch, older.epoch),
        since_us=known(same, older.since_us, seen.since_us),
        watched_from=known(watched.valid, watched, seen.watched_from),
        clean_from=known(clean.valid, clean, seen.clean_from),
    )
