"""The document of `tidemark log inspect`: what the files of partitions' logs hold.

Times are those of batches and coordinators; producers set the first, and one that no calendar knows is null.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from rules.facts.log_files import Codec, ControlType, ProblemKind
from rules.facts.log_findings import Difference, OffsetGapReason, SequenceGapReason
from rules.facts.log_folders import FolderState
from rules.facts.times import EPOCH, LAST_MS
from rules.facts.transactions import TransactionState
from rules.verdict import Verdict
from service.views.model import Model


def _time_of(value: object) -> object:
    if not isinstance(value, int):
        return value
    return EPOCH + timedelta(milliseconds=value) if 0 <= value <= LAST_MS else None


def _name_of(value: object) -> object:
    return value.name if isinstance(value, Verdict) else value


MsTimestamp = Annotated[datetime | None, BeforeValidator(_time_of)]  # of milliseconds since 1970
VerdictName = Annotated[str, BeforeValidator(_name_of), Field(description="OK, BREACH or UNKNOWN")]


class Problem(Model):
    """What of a file cannot be used."""

    kind: ProblemKind
    path: str
    position: Annotated[int | None, Field(description="Byte in the file; null: all of it")]
    end: Annotated[int | None, Field(description="Byte behind it; null: the file's end")]
    why: str


class Segment(Model):
    """One segment."""

    path: str
    base_offset: Annotated[int | None, Field(description="Of its name")]
    first_offset: int | None
    last_offset: int | None
    batches: int
    records: int
    size: Annotated[int, Field(description="Bytes of the batches that were read")]
    codecs: list[Codec]
    min_timestamp: MsTimestamp = Field(validation_alias="min_timestamp_ms")
    max_timestamp: MsTimestamp = Field(validation_alias="max_timestamp_ms")


class LeaderEpochRange(Model):
    """Consecutive batches that one leader epoch appended."""

    leader_epoch: int
    first_offset: int
    last_offset: int
    batches: int
    checkpoint_start_offset: Annotated[
        int | None, Field(description="In the leader-epoch-checkpoint")
    ]


class UnendedTransaction(Model):
    """A transaction whose marker is not in the log."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    last_timestamp: MsTimestamp = Field(validation_alias="last_timestamp_ms")


class AbortedTransaction(Model):
    """A transaction that was aborted."""

    producer_id: int
    producer_epoch: int
    first_offset: Annotated[int | None, Field(description="null: it wrote nothing in the log")]
    marker_offset: int
    coordinator_epoch: int | None


class Producer(Model):
    """The state of a producer behind the last batch."""

    producer_id: int
    producer_epoch: int
    last_sequence: Annotated[int | None, Field(description="null: nothing in this epoch")]
    last_offset: int | None
    last_timestamp: MsTimestamp = Field(validation_alias="timestamp_ms")
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None
    first_offset: Annotated[int | None, Field(description="null: known from a snapshot alone")]
    batches: int
    records: int
    is_transactional: bool


class WithoutProducerId(Model):
    """Batches of producers that are not idempotent."""

    batches: int
    records: int
    first_offset: int
    last_offset: int
    last_timestamp: MsTimestamp = Field(validation_alias="last_timestamp_ms")


class MissingOffsets(Model):
    """Offsets [start, end) that no batch has."""

    start: int
    end: int
    verdict: VerdictName
    reason: OffsetGapReason


class MissingSequences(Model):
    """Two batches of a producer that do not follow each other."""

    producer_id: int
    producer_epoch: int
    expected_sequence: int
    base_sequence: int
    after_offset: Annotated[int | None, Field(description="null: the first batch of it")]
    offset: int
    verdict: VerdictName
    reason: SequenceGapReason


class Contradiction(Model):
    """Two files of the log that contradict each other."""

    kind: Difference
    verdict: VerdictName
    path: str
    why: str


class WrittenState(Model):
    """A state of a transactional id, as its coordinator wrote it."""

    offset: int
    at: MsTimestamp
    state: Annotated[TransactionState | None, Field(description="null: the id is forgotten")]
    producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    started_at: MsTimestamp
    partitions: Annotated[list[str], Field(description="That still wait for a marker")]


class TransactionalId(Model):
    """What `__transaction_state` says of a transactional id."""

    transactional_id: str
    record_count: int
    states: Annotated[list[WrittenState], Field(description="The last ones, ascending")]


class Commit(Model):
    """The last commit of a group for a partition."""

    group: str
    topic: str
    partition: int
    committed_offset: Annotated[int | None, Field(description="null: it was deleted")]
    leader_epoch: int | None
    committed_at: MsTimestamp
    offset: Annotated[int, Field(description="Of its record")]
    record_count: int
    is_transactional: Annotated[bool, Field(description="Committed within a transaction")]


class InspectedLog(Model):
    """The log of one partition in files."""

    folder: str
    topic: Annotated[str | None, Field(description="null: the folder has another name")]
    partition: int | None
    topic_id: str | None
    state: FolderState
    first_offset: Annotated[int | None, Field(description="Of the first batch")]
    log_end_offset: int | None
    last_stable_offset: Annotated[
        int | None, Field(description="Of the first open transaction, else the end; as if all were replicated")
    ]  # fmt: skip
    log_start_offset: Annotated[int | None, Field(description="From the checkpoint")]
    high_watermark: Annotated[int | None, Field(description="From the checkpoint; 5 s old")]
    recovery_point: Annotated[int | None, Field(description="From the checkpoint: flushed")]
    is_compacted: bool
    segments: list[Segment]
    leader_epochs: list[LeaderEpochRange]
    committed_transactions: int
    aborted_transactions: int
    open_transactions: list[UnendedTransaction]
    aborted: Annotated[list[AbortedTransaction], Field(description="The first 1,000")]
    producers: list[Producer]
    not_idempotent: WithoutProducerId | None
    offset_gap_count: int
    offset_gaps: Annotated[list[MissingOffsets], Field(description="The first 1,000")]
    sequence_gap_count: int
    sequence_gaps: Annotated[list[MissingSequences], Field(description="The first 1,000")]
    differences: list[Contradiction]
    transactional_ids: Annotated[
        list[TransactionalId] | None, Field(description="Of __transaction_state alone")
    ]
    commits: Annotated[list[Commit] | None, Field(description="Of __consumer_offsets alone")]
    other_records: Annotated[
        dict[str, int] | None, Field(description="Counts of other kinds there, by Kafka's names")
    ]
    problems: list[Problem]


class CheckpointedOffset(Model):
    """One line of a checkpoint."""

    topic: str
    partition: int
    offset: int


class Checkpoint(Model):
    """A checkpoint that was named by itself."""

    path: str
    offsets: list[CheckpointedOffset]


class InspectedFiles(Model):
    """What `tidemark log inspect` prints."""

    complete: Annotated[bool, Field(description="false: `problems` say what was not read")]
    logs: list[InspectedLog]
    checkpoints: list[Checkpoint]
    problems: Annotated[list[Problem], Field(description="Of no log")]


class ControlRow(Model):
    """The record of a control batch."""

    type: ControlType
    coordinator_epoch: int | None


class BatchRow(Model):
    """One batch, as `tidemark log inspect --batches` prints it."""

    path: str
    position: int
    size: int
    base_offset: int
    last_offset: int
    record_count: int
    leader_epoch: int | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    last_sequence: int | None
    is_transactional: bool
    control: ControlRow | None
    codec: Codec
    crc: int
    first_timestamp: MsTimestamp = Field(validation_alias="first_timestamp_ms")
    max_timestamp: MsTimestamp = Field(validation_alias="max_timestamp_ms")


class RecordRow(Model):
    """One record, as `tidemark log inspect --records` prints it."""

    path: str
    offset: int
    timestamp: MsTimestamp = Field(validation_alias="timestamp_ms")
    producer_id: int | None
    is_transactional: bool
    key: Annotated[str | None, Field(description="null: it has none, or it is no text")]
    key_size: Annotated[int | None, Field(description="Bytes; null: it has none")]
    value_size: Annotated[int | None, Field(description="Bytes; null: a tombstone")]
    headers: Annotated[list[str], Field(description="Their names")]
