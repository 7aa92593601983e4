"""Where leader epochs ended, as the present leaders report it.

A leader knows for each epoch of its log where the next one began. What an earlier leader had beyond
that end is no longer in the log: the comparison with a remembered high watermark proves a loss
(docs/loss.md), and the one with a committed offset needs no memory at all. The answer may be about a
lower epoch than the requested one; the comparison still holds. For its own epoch a leader answers its
log end offset. An answer stays true for as long as the leader epoch lasts.
Source: OffsetForLeaderEpoch (KIP-101, KIP-279, KIP-320).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from rules.facts.column import Column, Int64s, find_codes

EPOCHS: Final = 2**31  # epochs are int32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpochEnds:
    """One row per (partition, epoch) that was answered, ordered by both."""

    row: Int64s  # of the snapshot's partitions
    epoch: Int64s  # the requested one
    # The latest epoch, not above the requested one, that the leader's log has, and the offset at which
    # it ended, exclusive. Absent: the log has none so old, which says nothing.
    found_epoch: Column
    end_offset: Column

    def __len__(self) -> int:
        return len(self.row)

    def find(self, row: Int64s, epoch: Column) -> Int64s:
        """Return the position of each (row, epoch) pair among the answers, -1 where none."""
        if not len(self) or not len(row):
            return np.full(len(row), -1, np.int64)
        codes = self.row * EPOCHS + self.epoch
        return find_codes(codes, row * EPOCHS + epoch.values, epoch.valid & (row >= 0))
