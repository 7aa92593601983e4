"""Answers about losses; absent values are null, never 0 or -1.

Their facts are evidence. Stored evidence outlives the version that wrote it: a value that is missing or
of another type becomes null, and so does a range without both ends.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, model_validator

from rules.open_findings import EndReason
from rules.verdict import Severity
from service.api.core.models import Paged, Stamped
from service.api.core.queries import PageQuery, PartitionNumber, Pattern, StateFilter
from service.rounds.persistence import PersistenceState
from service.views.model import FindingState, Model


class LossClass(StrEnum):
    """Class of a loss; one rule each, except the last one."""

    COMMITTED_LOST = "committed_lost"  # proven
    POSSIBLY_LOST = "possibly_lost"  # no replica that is left shows how many
    UNREPLICATED_LOST = "unreplicated_lost"  # never committed; lost to producers with acks=1 or 0
    UNCLEAN_ELECTION = "unclean_election"  # the cause of a loss
    COMMITTED_BEYOND_LOG_END = "committed_beyond_log_end"  # a group has read records that are gone
    # No observed committed record is missing; the rest is unknown.
    NOT_DETERMINABLE = "not_determinable"


def _timestamp_of(value: object) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(timestamp, datetime):
        return None
    return None if timestamp.tzinfo is None else timestamp


Timestamp = Annotated[datetime | None, BeforeValidator(_timestamp_of)]


class _Row(Model):
    """A row of evidence: what it lacks becomes null."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, row: object) -> object:
        return dict.fromkeys(cls.model_fields) | row if isinstance(row, dict) else row


class GroupBeyond(_Row):
    """A group that has committed beyond the end of the log."""

    group: str
    committed_offset: int | None
    committed_leader_epoch: int | None
    read_beyond: Annotated[int | None, Field(description="Offsets that it read and are gone")]
    may_skip_offsets: int | None
    """New offsets below its commit when the loss was found"""


class GroupGoneOn(_Row):
    """A group that has gone on in the new leader's log."""

    group: str
    committed_offset: int | None


class LossTransaction(_Row):
    """A transaction that a loss affects."""

    transactional_id: str
    producer_id: int | None
    committed_at: Timestamp


class LossFacts(Model):
    """Facts of a loss at one time.

    Ranges begin at `from` and end before `to`; offsets count markers and aborted records too.
    """

    reason: str
    election: Annotated[str | None, Field(description="clean, unclean or not_known")]
    leader_before: int | None
    leader_epoch_before: int | None
    leader: int | None
    leader_epoch: int | None
    epoch_end: int | None
    """Where the older epoch ended in the new leader's log"""
    former_leader_end: int | None
    """Log end offset of the former leader itself, if it answered"""
    certain_from: int | None
    """First offset that was committed when last seen and is gone"""
    certain_to: int | None
    certain_offsets: Annotated[int | None, Field(description="A lower bound, if there is any")]
    visible_to_read_committed: int | None
    """Of the certain ones: read_committed consumers could read them"""
    possible_from: int | None
    """First offset that is gone and may have been committed"""
    possible_to: int | None
    possible_offsets: int | None
    exact_from: int | None
    """First offset that is gone, as the former leader logged when it came back"""
    exact_to: int | None
    exact_offsets: int | None
    """Usually an upper bound: its last records may never have been acknowledged"""
    proven_committed_offsets: int | None
    """How many of the exact ones, from the first on, were committed"""
    former_leader: Annotated[int | None, Field(description="The broker whose log lines show it")]
    sole_in_sync_since: Timestamp
    """When it logged that no other replica is in sync, by its own clock"""
    uncommitted_from: int | None
    """First offset that is gone and was above the high watermark"""
    uncommitted_to: int | None
    uncommitted_offsets: int | None
    at_least_offsets: int | None
    """Lower bound, as the commit of a group proves"""
    last_observation: Timestamp
    """The last one before the leader changed"""
    unknown_since: Timestamp
    """Records that were appended after this may be lost too, unobserved"""
    committed_offset: int | None
    committed_leader_epoch: int | None
    high_watermark: int | None
    beyond_by: int | None
    """By how much the commit lies above the high watermark"""
    groups_beyond: list[GroupBeyond] | None
    """The first 20; null: they were not searched for"""
    group_count: int | None
    groups_gone_on: list[GroupGoneOn] | None
    """Beyond the loss, and committed in the new leader's epoch since: not to be moved; the first 20"""
    open_transactions: list[LossTransaction] | None
    """Open on the partition when last seen, the first 20"""
    lost_transactions: list[LossTransaction] | None
    """Committed, but none of their records is left; the first 20"""
    lost_transaction_count: int | None
    advice: Annotated[str | None, Field(description="The first step that the rule recommends")]
    more: Annotated[dict[str, Any], Field(description="Evidence that has no field of its own")]


class Loss(LossFacts):
    """A finding of lost records, with the facts of its last occurrence."""

    id: Annotated[str, Field(description="The id of the finding, also in /findings")]
    class_: Annotated[LossClass, Field(alias="class")]
    severity: Severity
    cluster: str | None
    cluster_id: str | None
    topic: str | None
    partition: int | None
    topic_id: str | None
    group: str | None
    """The group that committed; only for committed_beyond_log_end"""
    since: datetime
    last_happened_at: datetime
    """Later than since: it happened more than once"""
    state: FindingState
    subject_gone: Annotated[bool, Field(description="Its topic was deleted since")]
    ended_at: datetime | None
    end_reason: EndReason | None
    incident: Annotated[str | None, Field(description="null: found by a version without incidents")]
    next_steps: Annotated[list[str], Field(description="What to do, in this order")]


class AlsoFound(Model):
    """A finding of another rule for the same partition and incident."""

    id: str
    class_: Annotated[LossClass, Field(alias="class")]
    reason: str
    severity: Severity
    state: FindingState
    group: Annotated[str | None, Field(description="Of committed_beyond_log_end")]


class PartitionLoss(Loss):
    """The loss of one partition: the finding with the most certain class."""

    also: Annotated[list[AlsoFound], Field(description="Findings of other rules for it")]


class LossIncident(Model):
    """The losses on all partitions that one former leader had led."""

    id: str
    summary: Annotated[str, Field(description="The incident in one sentence")]
    severity: Severity
    broker: Annotated[int | None, Field(description="The former leader; null: not known")]
    since: Annotated[datetime, Field(description="When the first leader change was found")]
    last_happened_at: datetime
    last_observation: datetime | None
    """When the first partition was last seen under that leader"""
    state: FindingState
    partition_count: int
    lost_partitions: int
    """Partitions on which committed records are gone for certain"""
    certain_offsets: Annotated[int, Field(description="Lost on these partitions, a lower bound")]
    possibly_lost_partitions: int
    partitions: Annotated[list[PartitionLoss], Field(description="The worst first, 1000 at most")]


class LossPage(Paged[LossIncident], use_attribute_docstrings=True):
    """Incidents, the worst first, then the newest."""

    is_cut: bool
    """True if only the newest 5000 stored findings that match are shown"""
    storage: PersistenceState
    """not_loaded: losses of an earlier process may be missing"""


class LossEvent(LossFacts):
    """One occurrence of a loss, with its facts."""

    at: datetime


class LossDetail(Stamped):
    """A loss with its occurrences, oldest first."""

    loss: Loss
    events: list[LossEvent] | None
    """null while the database cannot be read"""
    error: Annotated[str | None, Field(description="Why there are no events")]
    storage: PersistenceState


class LossQuery(PageQuery):
    """Which losses; those that are known to match are shown."""

    state: StateFilter = StateFilter.OPEN
    """open: from memory; ended, all: from the database"""
    class_: Annotated[LossClass | None, Field(alias="class")] = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    group: Pattern | None = None
    """The group that committed beyond the log end, or one of `groups_beyond`"""
    since: Annotated[AwareDatetime | None, Field(examples=["2026-01-31T03:00:00Z"])] = None
    """Only what last happened then or later"""
