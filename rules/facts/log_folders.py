"""The files of one partition's log, as they were found, and what the log directory around them says of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.log_files import FileProblem
from rules.facts.log_states import EpochCheckpoint, ProducerSnapshot, TransactionIndex


class FolderState(StrEnum):
    """What a broker made of a folder, by the end of its name."""

    LIVE = "live"
    DELETED = "deleted"  # `-delete`: the topic is gone, the files soon will be
    FUTURE = "future"  # `-future`: being moved to another log directory
    STRAY = "stray"  # `-stray`: the partition belongs to no topic of this broker


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment, by its path and the offset in its name."""

    path: str
    base_offset: int | None  # None: the file has another name


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLog:
    """One partition's log in files; what is absent was not found."""

    folder: str
    name: TopicPartition | None = None  # None: the folder was copied under another name
    state: FolderState = FolderState.LIVE
    topic_id: TopicId | None = None
    segments: tuple[SegmentFile, ...] = ()  # ascending
    snapshots: tuple[ProducerSnapshot, ...] = ()  # ascending
    transaction_indexes: tuple[TransactionIndex, ...] = ()  # ascending
    epochs: EpochCheckpoint | None = None
    # From the checkpoints of the log directory around the folder; None: it is not there, or does not name it.
    high_watermark: int | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    is_cleaned: bool = False  # a compaction of it is noted there, or its files show one
    problems: tuple[FileProblem, ...] = ()
