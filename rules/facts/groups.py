"""Groups, what they committed, and the lags that follow.

A committed offset is the next one to read. Lags count offsets, not records: transaction markers
and compacted records use offsets too. A group's isolation level cannot be queried, so both lags are
given and the reader declares which one matters.
Source: ListGroups (KIP-848 types), DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe,
OffsetFetch, DescribeShareGroupOffsets (KIP-932).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import BrokerId
from rules.facts.members import Member
from rules.facts.offsets import Offsets
from rules.facts.unchanged_since import either


class GroupType(StrEnum):
    """The protocol a group speaks; `UNKNOWN` is a type that a newer broker may report."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group as its coordinator describes it."""

    group_id: str
    group_type: GroupType
    state: str | None  # Kafka's own word, such as Stable, Empty, PreparingRebalance
    member_count: int | None
    coordinator: BrokerId | None  # None: brokers disagree, and it is not known which one is right
    # Whether members ever joined it: empty for a group that only commits; absent: not described.
    protocol_type: str | None = None
    epoch: int | None = None  # KIP-848: grows with each change of its members or subscriptions
    assignor: str | None = (
        None  # who decides which member owns what; absent: none, or not described
    )
    members: tuple[Member, ...] | None = None  # None: not described


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Commits:
    """One row per (group, partition) with a commit; for a share group, its start offset.

    A share group's start offset is what its coordinator has stored. Records beyond it may be
    acknowledged: the lag that its coordinator reports (Kafka 4.2) does not count them. From an older
    broker, which reports none, the lag to the start offset is overstated.
    A partition without a commit has no row here: "no commit" is not an offset.
    """

    group: Int64s  # position in `Snapshot.groups`
    row: Int64s  # row of the partition index
    committed_offset: Int64s
    committed_leader_epoch: Column  # absent when the client committed none
    nothing_to_read: Column  # 1 true, 0 false, absent: not queried or not known
    scan_failed: Bools  # `nothing_to_read` is absent because the log could not be read
    reported_lag: Column  # offsets to the high watermark, as the coordinator counts them
    has_reported_lag: Bools  # the broker reports lags: one that is absent is then not known

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def none(cls) -> Commits:
        """Return no commits."""
        empty = np.zeros(0, np.int64)
        return cls(
            group=empty,
            row=empty,
            committed_offset=empty,
            committed_leader_epoch=Column.absent(0),
            nothing_to_read=Column.absent(0),
            scan_failed=np.zeros(0, np.bool_),
            reported_lag=Column.absent(0),
            has_reported_lag=np.zeros(0, np.bool_),
        )

    def read_committed_lag(self, offsets: Offsets) -> Column:
        """Return last stable offset minus committed offset; the reported lag without the open span.

        Absent where the group is above the last stable offset: it reads uncommitted records,
        so that this lag has no meaning for it.
        """
        open_span = offsets.high_watermark - offsets.last_stable_offset
        return self._lag(offsets.last_stable_offset, self.reported_lag - open_span.take(self.row))

    def read_uncommitted_lag(self, offsets: Offsets) -> Column:
        """Return high watermark minus committed offset, or the reported lag.

        Absent where the group is above the high watermark, which is evidence of lost records
        or of a manual reset and is reported as a gap, never clamped to zero.
        """
        return self._lag(offsets.high_watermark, self.reported_lag)

    def beyond_high_watermark(self, offsets: Offsets) -> Int64s:
        """Return the positions of commits above the high watermark that was read after them."""
        end = offsets.high_watermark.take(self.row)
        return np.flatnonzero(end.valid & (self.committed_offset > end.values))

    def of_another_topic(self, offsets: Offsets) -> Bools:
        """Mark the commits that were made on an earlier topic of the same name, as their epoch proves.

        Within one leader epoch nothing that was read disappears: a commit above the high watermark of
        its own leader epoch, or of an older one, belongs to another topic.
        """
        end, present = offsets.high_watermark.take(self.row), offsets.leader_epoch.take(self.row)
        epoch = self.committed_leader_epoch
        is_beyond = end.valid & (self.committed_offset > end.values)
        mask: Bools = is_beyond & epoch.valid & present.valid & (epoch.values >= present.values)
        return mask

    def _lag(self, end_of_partition: Column, reported: Column) -> Column:
        lag = end_of_partition.take(self.row) - Column.known(self.committed_offset)
        if self.has_reported_lag.any():
            lag = either(self.has_reported_lag, reported, lag)
        return lag.where(lag.values >= 0)
