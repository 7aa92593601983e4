"""Since when partitions have fewer in-sync replicas than replicas; carried from round to round.

A round that does not see the ISR neither begins nor ends that time. Where none saw it for long the time
begins anew: being out of sync before and after says nothing about the time between. It is in the
checkpoint. Times are microseconds since 1970-01-01 UTC, by our own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Table
from rules.facts.partitions import Partitions
from rules.facts.times import MICROSECOND
from rules.facts.unchanged_since import either

# After which a time that no round saw begins anew. What lasts for less does not count by its rule.
LONGEST_UNSEEN: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicationMemory(Table):
    """One row per partition."""

    replicas: Column  # how many there are, as of the last round that saw the ISR
    since_us: Column  # the first round that saw a smaller ISR; absent where it is whole
    seen_us: Column  # the last round that saw the ISR
    first_seen_us: Column  # the first one of this process; not stored

    @classmethod
    def absent(cls, rows: int) -> ReplicationMemory:
        """Return rows of which nothing is known."""
        nothing = Column.absent(rows)
        return cls(replicas=nothing, since_us=nothing, seen_us=nothing, first_seen_us=nothing)

    def with_times(self, change: Callable[[Int64s], Int64s]) -> ReplicationMemory:
        """Return the memory with its times changed."""
        return ReplicationMemory(
            replicas=self.replicas,
            since_us=self.since_us.changed(change),
            seen_us=self.seen_us.changed(change),
            first_seen_us=self.first_seen_us.changed(change),
        )

    def padded(self, rows: int) -> ReplicationMemory:
        """Return `rows` rows, of which nothing is known behind the ones that are here."""
        missing = rows - len(self.replicas)
        return self.joined(ReplicationMemory.absent(missing)) if missing else self


def advance_replication(
    partitions: Partitions, now_us: int, old: ReplicationMemory
) -> ReplicationMemory:
    """Return the memory one round later; `old` has the rows of `partitions` first.

    Another number of replicas, as at the beginning of a reassignment, begins anew.
    """
    rows = len(old.replicas)
    replicas = Column(partitions.replicas.lengths, partitions.replicas.valid).padded(rows)
    missing = replicas - Column(partitions.isr.lengths, partitions.isr.valid).padded(rows)
    is_seen, is_out = missing.valid, missing.valid & (missing.values > 0)
    now = Column.known(np.full(rows, now_us, np.int64))
    goes_on = is_out & _continue(old, replicas, now)
    return ReplicationMemory(
        replicas=either(is_seen, replicas, old.replicas),
        since_us=either(is_seen & ~goes_on, now.where(is_out), old.since_us),
        seen_us=either(is_seen, now, old.seen_us),
        first_seen_us=either(is_seen & ~old.first_seen_us.valid, now, old.first_seen_us),
    )


def merge_replication(stored: ReplicationMemory, seen: ReplicationMemory) -> ReplicationMemory:
    """Merge the stored memory of an earlier process; what began anew in this one did so."""
    is_first = seen.since_us.valid & (seen.since_us.values == seen.first_seen_us.values)
    goes_on = is_first & _continue(stored, seen.replicas, seen.since_us)
    is_unseen = ~seen.seen_us.valid
    return ReplicationMemory(
        replicas=either(is_unseen, stored.replicas, seen.replicas),
        since_us=either(is_unseen | goes_on, stored.since_us, seen.since_us),
        seen_us=either(is_unseen, stored.seen_us, seen.seen_us),
        first_seen_us=seen.first_seen_us,
    )


def _continue(before: ReplicationMemory, replicas: Column, out_us: Column) -> Bools:
    """Mark what was out of sync `before` and, as far as rounds saw it, ever since; `out_us` is when again."""
    same = before.replicas.valid & (before.replicas.values == replicas.values)
    unseen_us = out_us - before.seen_us
    is_short = unseen_us.valid & (unseen_us.values <= LONGEST_UNSEEN // MICROSECOND)
    mask: Bools = before.since_us.valid & same & is_short
    return mask
