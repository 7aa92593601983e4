"""Who writes to a partition, and how a group commits, by batches sampled from the leaders' logs.

Settings of clients cannot be queried, but a batch header shows what they lead to: a producer id, or none
without idempotence, the first sequence, and whether the batch belongs to a transaction. A sample holds the newest
batches of some partitions only; what it does not show is not known.
Source: the v2 record batch layout (KIP-98), Fetch with isolation read_uncommitted; needs READ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rules.facts.identity import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSample:
    """The sampled batches of one producer on one partition; batches of several producers without an id are one.

    Record times are aware, UTC, set by producers; None where they set none.
    """

    producer_id: int | None  # None: not idempotent
    producer_epoch: int | None  # of the last batch
    first_offset: int
    last_offset: int
    first_sequence: int | None  # int32, of the first batch
    first_epoch: int | None  # of the producer, in the first batch
    first_record_at: datetime | None
    last_record_at: datetime | None
    batch_count: int
    is_transactional: bool
    record_count: int = 0
    size_bytes: int = 0  # of whole batches, as compressed as they are

    @property
    def begins(self) -> bool:
        """Whether the first batch is the producer id's very first one on this partition."""
        return self.first_sequence == 0 and self.first_epoch == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSample:
    """The newest batches of one partition."""

    row: int  # of the snapshot's partitions
    sampled_from: int  # offsets from here
    sampled_to: int  # to here, exclusive
    writers: tuple[WriterSample, ...]  # control batches have none
    markers: tuple[tuple[int, int], ...] = ()  # (producer id, its markers of transactions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSample:
    """One commit in a batch of `__consumer_offsets`."""

    group_id: str
    name: TopicPartition  # on which it is a commit
    offset: int  # in `__consumer_offsets`, where a group has one partition
    producer_id: int | None  # of the transaction that it belongs to; None: it belongs to none
    record_at: datetime | None  # aware, UTC, by the coordinator's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSamples:
    """What one round sampled."""

    is_read: bool  # False: nothing was to be sampled
    partitions: tuple[PartitionSample, ...] = ()
    commits: tuple[CommitSample, ...] = ()  # ascending by offset within a group
    denied_topics: tuple[str, ...] = ()  # without READ, as far as they were tried
    waiting: int = 0  # partitions whose log grew, and that have their turn later: at least so many
    sampled_bytes: int = 0  # of records in the answers
    requests: int = 0

    @classmethod
    def unread(cls) -> BatchSamples:
        """Return the value for a round that samples nothing."""
        return cls(is_read=False)
