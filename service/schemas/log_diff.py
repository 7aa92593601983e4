"""The document of `log diff`: what a former leader's copy has and the new log lacks."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from rules.log_files.histories import DiffReason
from rules.log_files.missing import Fate, Outcome
from service.api.core.models import VerdictWord
from service.views.log_diff.compared import ComparedBy
from service.views.model import Model


class Side(StrEnum):
    """One of the two logs."""

    OLD = "old"
    NEW = "new"


class OldCopy(Model):
    """The former leader's copy."""

    folder: str
    topic_id: str | None
    leader_epoch: Annotated[int | None, Field(description="The latest one")]
    log_start_offset: int
    log_end_offset: Annotated[int, Field(description="Behind the last batch that can be read")]
    checkpointed_high_watermark: Annotated[
        int | None, Field(description="Of `replication-offset-checkpoint`, up to 5 s old")
    ]


class NewCopy(Model):
    """The new log."""

    where: Annotated[str | None, Field(description="Its folder, or its leader")]
    topic_id: str | None
    leader_epoch: int | None
    log_start_offset: int
    read_to: Annotated[int, Field(description="Exclusive: of a leader, its high watermark")]


class FateRange(Model):
    """Records that follow each other and have one fate."""

    fate: Fate
    from_offset: int
    to_offset: Annotated[int, Field(description="Exclusive")]
    records: int


class MissingTransaction(Model):
    """A transaction with records behind the place where the logs part."""

    producer_id: int | None
    producer_epoch: int | None
    outcome: Outcome
    first_offset: int
    last_offset: int
    records: int
    again_records: Annotated[int, Field(description="Of these, sent again in the same batches")]
    marker_offset: int | None
    marker_in: Side | None


class ComparedPartition(Model):
    """What one partition's copy has and the new log lacks."""

    topic: str
    partition: int
    verdict: VerdictWord
    reason: DiffReason
    explanation: str
    error: Annotated[str | None, Field(description="Why the new log was not read")]
    old: OldCopy
    new: NewCopy
    divergence_offset: Annotated[int | None, Field(description="Where the logs part")]
    high_watermark: Annotated[
        int | None, Field(description="What lies below was committed for certain")
    ]
    compared_by: Annotated[ComparedBy | None, Field(description="null: nothing was compared")]
    missing_offsets: Annotated[int | None, Field(description="Markers included")]
    missing_batches: Annotated[int | None, Field(description="Of records")]
    control_batches: int | None
    records: Annotated[dict[Fate, int], Field(description="How many have which fate")]
    ranges: Annotated[list[FateRange], Field(description="The first 1,000")]
    ranges_cut: bool
    transactions: Annotated[list[MissingTransaction], Field(description="The first 1,000")]
    written_records: Annotated[int | None, Field(description="null: no file was wanted")]
    left_out_records: Annotated[dict[Fate, int] | None, Field(description="By fate")]
    written_batches: int | None
    limits: Annotated[list[str], Field(description="What the comparison could not see")]
    next_steps: list[str]


class LogDiff(Model):
    """All partitions that were compared."""

    partitions: list[ComparedPartition]
    records_file: str | None
    written_fates: list[Fate]
    segment_file: str | None
    problems: Annotated[list[str], Field(description="Files of the copy that cannot be read")]
