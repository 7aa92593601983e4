"""Light observations, between two rounds, of partitions that may lose records when their leader crashes.

A proof of loss compares with the last observation before the leader changed: the fresher it is, the less
stays unknown. No verdict rests on these observations alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rules.facts.column import Column, Int64s, Table
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

EPOCH_BITS: Final = 32  # a leader epoch is an int32, so that row and epoch fit in one int64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtRiskObservations(Table):
    """The latest observation of each partition in each leader epoch; one row per pair, ordered by time."""

    partitions: Partitions  # of the round that determined which ones are at risk
    row: Int64s  # of these partitions; repeated where the leader epoch changed
    leader_epoch: Int64s  # in the leader's own answer
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    observed_at_us: Int64s  # microseconds since 1970-01-01 UTC

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def none(cls, partitions: Partitions) -> AtRiskObservations:
        """Return no observations."""
        nothing, unknown = np.zeros(0, np.int64), Column.absent(0)
        return cls(
            partitions=partitions,
            row=nothing,
            leader_epoch=nothing,
            last_stable_offset=unknown,
            high_watermark=unknown,
            log_end_offset=unknown,
            observed_at_us=nothing,
        )

    def over(self, partitions: Partitions) -> AtRiskObservations:
        """Return the observations by the rows of other partitions; those that are gone are left out."""
        if partitions is self.partitions:
            return self
        row = matching_rows(self.partitions, partitions)[self.row]
        remaining = self.take(np.flatnonzero(row >= 0))
        return replace(remaining, partitions=partitions, row=row[row >= 0])

    def with_newer(self, newer: AtRiskObservations) -> AtRiskObservations:
        """Return the latest observation of each partition in each leader epoch; `newer` has the same rows."""
        both = self.joined(newer)
        keys = (both.row << EPOCH_BITS) | both.leader_epoch
        _, from_the_end = np.unique(keys[::-1], return_index=True)
        return both.take(np.sort(len(keys) - 1 - from_the_end))

    def not_behind(self, offsets: Offsets) -> AtRiskObservations:
        """Leave out observations whose offsets a round's exceed within the same leader epoch.

        A round is dated by its start and reads offsets later: an observation in between seems newer.
        """
        is_same = offsets.leader_epoch.valid[self.row]
        is_same &= offsets.leader_epoch.values[self.row] == self.leader_epoch
        behind = np.zeros(len(self), np.bool_)
        for seen, mine in (
            (offsets.high_watermark, self.high_watermark),
            (offsets.log_end_offset, self.log_end_offset),
        ):
            ahead = seen.take(self.row) - mine
            behind |= ahead.valid & (ahead.values > 0)
        return self.take(np.flatnonzero(~(is_same & behind)))
