"""Since when each partition has had its leader epoch, and since which one it is watched.

A change of leader that happened before Tidemark observed may have lost records: "only clean changes"
can be said only from the epoch on in which the watch began without a break.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Column, Int64s
from rules.facts.identity import TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaderships:
    """One row per partition of `partitions`."""

    partitions: Partitions
    epoch: Column  # the latest that a leader told of itself
    since_us: Column  # when a round first saw it, microseconds since 1970-01-01 UTC
    # From this epoch on every change of leader is known, and seemed clean or is remembered otherwise.
    watched_from: Column
    # From this one on they were clean for certain: unclean elections were forbidden.
    clean_from: Column

    @classmethod
    def none(cls) -> Leaderships:
        """Return what is known before the first round."""
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
        """Return what is known of `partitions`, by their rows."""
        if partitions is self.partitions:
            return self
        rows = matching_rows(partitions, self.partitions)
        return Leaderships(
            partitions=partitions,
            epoch=self.epoch.take(rows),
            since_us=self.since_us.take(rows),
            watched_from=self.watched_from.take(rows),
            clean_from=self.clean_from.take(rows),
        )

    def with_times(self, change: Callable[[Int64s], Int64s]) -> Leaderships:
        """Return it with its times changed."""
        times = self.since_us
        moved = Column(np.where(times.valid, change(times.values), 0), times.valid)
        return replace(self, since_us=moved)


def leaderships_under(stored: Leaderships, seen: Leaderships) -> Leaderships:
    """Return what a process knows that could read an earlier one's memory only after some rounds.

    A change between the two will be proven like any other: the last observation of before is kept for it.
    """
    older = stored.over(seen.partitions)
    same = older.epoch.valid & seen.epoch.valid & (older.epoch.values == seen.epoch.values)
    same |= older.epoch.valid & ~seen.epoch.valid
    since = np.where(same, older.since_us.values, seen.since_us.values)
    epoch = np.where(seen.epoch.valid, seen.epoch.values, older.epoch.values)
    known = seen.epoch.valid | older.epoch.valid

    def since_before(stored_one: Column, seen_one: Column) -> Column:
        values = np.where(stored_one.valid, stored_one.values, seen_one.values)
        return Column(np.where(known, values, 0), known)

    return replace(
        seen,
        epoch=Column(np.where(known, epoch, 0), known),
        since_us=Column(np.where(known, since, 0), known),
        watched_from=since_before(older.watched_from, seen.watched_from),
        clean_from=since_before(older.clean_from, seen.clean_from),
    )
