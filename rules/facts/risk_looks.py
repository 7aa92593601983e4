"""Light looks between two rounds at partitions that may lose records when their leader dies.

A proof of loss compares with the last look before the leader changed: the fresher it is, the less
stays unknown. Nothing is judged by these looks alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.column import Column, Int64s
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RiskLooks:
    """The latest look at each partition in each leader epoch; one row per pair, in time's order."""

    partitions: Partitions  # of the round that told which ones are at risk
    row: Int64s  # of these partitions; a row comes again where its leader epoch changed
    leader_epoch: Int64s  # in the leader's own answer
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    looked_at_us: Int64s  # microseconds since 1970-01-01 UTC

    def __len__(self) -> int:
        return len(self.row)
