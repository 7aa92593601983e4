"""What the small files of a log directory hold: producer states, checkpoints, indexes, topic ids.

Each has the problems with which it was read; what a file that is damaged in part still says is kept.
Source: ProducerStateManager, OffsetCheckpointFile, LeaderEpochCheckpointFile, TransactionIndex and
PartitionMetadataFile of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.log_files import FileProblem
from rules.facts.rejections import SEQUENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerEntry:
    """The state of one producer on one partition, as the broker keeps it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int | None = None  # None: it wrote nothing in this epoch
    last_offset: int | None = None
    offset_delta: int = 0  # of the last batch: its last offset minus its first
    timestamp_ms: int | None = None  # since 1970, of the last batch or marker
    coordinator_epoch: int | None = None  # of its last marker
    current_transaction_start_offset: int | None = None  # None: no transaction is open

    @property
    def first_sequence(self) -> int | None:
        """The sequence of the first record in its last batch."""
        if self.last_sequence is None:
            return None
        return (self.last_sequence - self.offset_delta) % SEQUENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSnapshot:
    """A `.snapshot` file: the producers' states before its offset."""

    path: str
    offset: int
    producers: tuple[ProducerEntry, ...] = ()
    problems: tuple[FileProblem, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it can be compared with the log."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCheckpoint:
    """A file of a log directory with one offset per partition."""

    path: str
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    problems: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochStart:
    """Where a leader epoch begins, as the broker noted it."""

    leader_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCheckpoint:
    """The `leader-epoch-checkpoint` of a partition, ascending."""

    path: str
    epochs: tuple[EpochStart, ...] = ()
    problems: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class AbortedEntry:
    """An entry of a `.txnindex`: a transaction that was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int  # of its marker
    last_stable_offset: int  # when the marker was written


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionIndex:
    """A `.txnindex` file; it is there once a transaction was aborted in its segment."""

    path: str
    base_offset: int
    aborted: tuple[AbortedEntry, ...] = ()
    problems: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The `partition.metadata` of a partition."""

    path: str
    topic_id: TopicId | None = None
    problems: tuple[FileProblem, ...] = ()
