"""Which partitions a cluster has, who leads them and who is in sync.

Source: DescribeTopicPartitions (KIP-966) or Metadata, DescribeConfigs. Metadata runs ahead of or
behind the leader's own view, so its `leader_epoch` is for requests, not for judging: the epoch of
record is the one in the leader's own ListOffsets answer (`Offsets.leader_epoch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Ragged, join_columns, take_columns
from rules.facts.identity import TopicId, TopicPartition


@dataclass(frozen=True, slots=True, eq=False)
class PartitionIndex:
    """A stable numbering of partitions: topics in order, their partitions 0..n-1 side by side."""

    topics: tuple[str, ...]
    starts: Int64s  # shape (topics + 1,): first row of each topic, then the number of rows
    position_of_topic: Mapping[str, int] = field(repr=False)

    @classmethod
    def of(cls, partition_counts: Mapping[str, int]) -> PartitionIndex:
        """Number the partitions of topics given as name -> partition count, in that order."""
        topics = tuple(partition_counts)
        counts = np.fromiter(partition_counts.values(), np.int64, len(topics))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return cls(topics, starts, {topic: position for position, topic in enumerate(topics)})

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def topic_of_row(self) -> Int64s:
        """Position in `topics` of each row's topic, shape (rows,)."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int64), np.diff(self.starts))

    def row(self, topic: str, partition: int) -> int | None:
        """Return the row of a partition, or None if the cluster has no such partition."""
        position = self.position_of_topic.get(topic)
        if position is None:
            return None
        row = int(self.starts[position]) + partition
        return row if partition >= 0 and row < self.starts[position + 1] else None

    def topic_partition(self, row: int) -> TopicPartition:
        """Return the name of a row."""
        position = int(np.searchsorted(self.starts, row, side="right")) - 1
        return TopicPartition(self.topics[position], row - int(self.starts[position]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    """Placement of every partition; one row per partition of `index`."""

    index: PartitionIndex
    topic_ids: Sequence[TopicId | None]  # per topic of the index; None before Kafka 2.8
    internal: Sequence[bool]  # per topic of the index
    leader: Column  # broker id; absent while the partition has no leader
    leader_epoch: Column  # from metadata
    replicas: Ragged
    isr: Ragged
    elr: Ragged  # eligible leader replicas (KIP-966); unknown before Kafka 3.8
    last_known_elr: Ragged
    min_insync_replicas: Column  # the topic's effective `min.insync.replicas`
    # The topic's effective `unclean.leader.election.enable`, 1 or 0.
    unclean_election_enabled: Column

    def __len__(self) -> int:
        return len(self.index)

    def topic_id(self, row: int) -> TopicId | None:
        """Return the id of the topic to which a row belongs."""
        position = int(np.searchsorted(self.index.starts, row, side="right")) - 1
        return self.topic_ids[position]

    def id_of(self, topic: str) -> TopicId | None:
        """Return the id of a topic, None where it has none, or there is no such topic."""
        position = self.index.position_of_topic.get(topic)
        return None if position is None else self.topic_ids[position]

    @property
    def are_without_id(self) -> Bools:
        """Mark the partitions of topics without an id."""
        unnamed = np.array([topic_id is None for topic_id in self.topic_ids], np.bool_)
        return unnamed[self.index.topic_of_row]

    def with_topics_of(self, older: Partitions, positions: Sequence[int]) -> Partitions:
        """Return these partitions, then those of the topics of `older` at `positions`."""
        if not positions:
            return self
        starts, mine = older.index.starts, self.index
        counts = dict(zip(mine.topics, np.diff(mine.starts).tolist(), strict=True))
        for position in positions:
            counts[older.index.topics[position]] = int(starts[position + 1] - starts[position])
        rows = np.concatenate(
            [np.arange(starts[position], starts[position + 1]) for position in positions]
        )
        return replace(
            join_columns(self, take_columns(older, rows)),
            index=PartitionIndex.of(counts),
            topic_ids=(*self.topic_ids, *(older.topic_ids[position] for position in positions)),
            internal=(*self.internal, *(older.internal[position] for position in positions)),
        )

    @classmethod
    def none(cls) -> Partitions:
        """Return the placement of a cluster without topics."""
        return cls.named(PartitionIndex.of({}), ())

    @classmethod
    def named(cls, index: PartitionIndex, topic_ids: Sequence[TopicId | None]) -> Partitions:
        """Return partitions of which nothing is known but their names."""
        rows = len(index)
        nothing, lists = Column.absent(rows), Ragged.of([None] * rows)
        return cls(
            index=index,
            topic_ids=tuple(topic_ids),
            internal=(False,) * len(index.topics),
            leader=nothing,
            leader_epoch=nothing,
            replicas=lists,
            isr=lists,
            elr=lists,
            last_known_elr=lists,
            min_insync_replicas=nothing,
            unclean_election_enabled=nothing,
        )
