"""What the batches of a log show: segments, epochs, transactions, producers, and what is missing between them.

A gap has a verdict. OK: it is how this log works. BREACH: nothing that is known explains it. UNKNOWN: what would
decide is not in these files. None of it is a proof of loss by itself: that takes the log of another replica.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rules.facts.log_files import Codec
from rules.facts.log_states import ProducerEntry
from rules.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSummary:
    """What one segment holds."""

    path: str
    base_offset: int | None  # of its name
    first_offset: int | None  # None: no batch in it can be read
    last_offset: int | None
    batches: int
    records: int
    size: int  # bytes of its batches
    codecs: frozenset[Codec]
    min_timestamp_ms: int | None  # since 1970, of records: set by producers
    max_timestamp_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRange:
    """Consecutive batches that one leader epoch appended."""

    leader_epoch: int
    first_offset: int
    last_offset: int
    batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction whose marker is not in the log."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int  # of its last batch so far
    last_timestamp_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransaction:
    """A transaction with its marker."""

    producer_id: int
    producer_epoch: int  # of the marker
    is_commit: bool
    first_offset: int | None  # None: it began before the log
    marker_offset: int
    coordinator_epoch: int | None


class SequenceGapReason(StrEnum):
    """What is known of a producer's sequences that do not follow each other."""

    SEQUENCES_MISSING = "sequences_missing"  # no offset is missing between the two batches
    SEQUENCES_REPEATED = "sequences_repeated"  # sequences that the log has already: duplicates
    SEQUENCE_RESTARTED = (
        "sequence_restarted"  # from 0 in the same epoch: clients before 2.5 do that
    )
    EPOCH_WENT_BACK = "epoch_went_back"  # an older producer epoch wrote behind a newer one
    OFFSETS_MISSING_BETWEEN = "offsets_missing_between"  # compacted, damaged or not copied
    LOG_STARTS_LATER = "log_starts_later"  # the producer may have written what retention deleted
    STARTS_ABOVE_ZERO = (
        "starts_above_zero"  # though the log has all its offsets: a topic created again, or loss
    )


class OffsetGapReason(StrEnum):
    """Why offsets are missing between two batches."""

    COMPACTED = "compacted"  # the log shows that it is compacted
    UNREADABLE = "unreadable"  # a problem of the file lies between
    BETWEEN_SEGMENTS = "between_segments"  # a segment is missing, or compaction emptied its end
    NOT_EXPLAINED = "not_explained"


VERDICTS: Final = MappingProxyType(
    {
        SequenceGapReason.SEQUENCES_MISSING: Verdict.BREACH,
        SequenceGapReason.SEQUENCES_REPEATED: Verdict.BREACH,
        SequenceGapReason.SEQUENCE_RESTARTED: Verdict.UNKNOWN,
        SequenceGapReason.EPOCH_WENT_BACK: Verdict.BREACH,
        SequenceGapReason.OFFSETS_MISSING_BETWEEN: Verdict.UNKNOWN,
        SequenceGapReason.LOG_STARTS_LATER: Verdict.UNKNOWN,
        SequenceGapReason.STARTS_ABOVE_ZERO: Verdict.UNKNOWN,
        OffsetGapReason.COMPACTED: Verdict.OK,
        OffsetGapReason.UNREADABLE: Verdict.UNKNOWN,
        OffsetGapReason.BETWEEN_SEGMENTS: Verdict.UNKNOWN,
        OffsetGapReason.NOT_EXPLAINED: Verdict.UNKNOWN,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGap:
    """Two batches of a producer that do not follow each other."""

    producer_id: int
    producer_epoch: int  # of the second batch
    expected_sequence: int
    base_sequence: int  # that it has instead
    after_offset: int | None  # of the last record before it; None: it is the first in the log
    offset: int  # its base offset
    reason: SequenceGapReason

    @property
    def verdict(self) -> Verdict:
        """What the gap means."""
        return VERDICTS[self.reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetGap:
    """Offsets [start, end) that no batch of the log has."""

    start: int
    end: int
    reason: OffsetGapReason

    @property
    def verdict(self) -> Verdict:
        """What the gap means."""
        return VERDICTS[self.reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotIdempotent:
    """Batches without a producer id: a retry of such a writer may duplicate or reorder records."""

    batches: int = 0
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    last_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerInLog:
    """A producer's state behind the last batch of the log, and what it wrote there."""

    entry: ProducerEntry
    first_offset: int | None  # None: it is known from a snapshot alone
    batches: int
    records: int
    is_transactional: bool


class Difference(StrEnum):
    """How two files of one log contradict each other."""

    PRODUCER_STATE = "producer_state"  # a snapshot and the batches before its offset
    PRODUCER_MISSING = (
        "producer_missing"  # only the batches know it: it had expired, or the snapshot is older
    )
    ABORTED_TRANSACTION = "aborted_transaction"  # a transaction index and the markers
    LEADER_EPOCH = "leader_epoch"  # the leader-epoch-checkpoint and the batches


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """One contradiction between a file and the batches of the log."""

    kind: Difference
    verdict: Verdict
    path: str  # of the file that the batches contradict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFindings:
    """All that the batches of one partition's log show."""

    segments: tuple[SegmentSummary, ...]
    log_start_offset: int | None  # of its first batch; None: it has none
    log_end_offset: int | None
    last_stable_offset: (
        int | None
    )  # before the first open transaction, whatever the high watermark is
    epochs: tuple[EpochRange, ...]
    committed: int
    aborted: int
    open_transactions: tuple[OpenTransaction, ...]  # ascending by first offset
    aborted_transactions: tuple[EndedTransaction, ...]  # the first ones, ascending
    producers: tuple[ProducerInLog, ...]  # ascending by id
    not_idempotent: NotIdempotent
    offset_gaps: tuple[OffsetGap, ...]  # the first ones, ascending
    offset_gap_count: int
    sequence_gaps: tuple[SequenceGap, ...]  # likewise
    sequence_gap_count: int
    differences: tuple[FileDifference, ...]
    is_compacted: bool
