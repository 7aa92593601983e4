"""The four offsets of a partition that matter to exactly-once, one row per partition.

`log_start_offset` <= `last_stable_offset` <= `high_watermark` <= `log_end_offset` within one answer
of a leader; they are read in that order, so that a race can only widen the spans.
Source: ListOffsets with timestamps earliest (-2) and latest (-1), isolation levels
read_committed and read_uncommitted, and replica id -2 (the debugging consumer) for the log end.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.column import Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offsets:
    """What the leaders answered; absent where the leader gave no usable answer in this round."""

    log_start_offset: Column
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    leader_epoch: Column  # the epoch in the leader's own answer
    replica_log_end_offsets: Column  # one row per value of `Partitions.replicas`; often absent

    @property
    def open_span(self) -> Column:
        """High watermark minus last stable offset: offsets held back by open transactions."""
        return self.high_watermark - self.last_stable_offset

    @property
    def unreplicated_span(self) -> Column:
        """Log end offset minus high watermark: offsets that exist on too few replicas."""
        return self.log_end_offset - self.high_watermark
