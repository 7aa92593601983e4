"""Answers about losses; absent values are null, never 0 or -1.

Their facts are evidence. Stored evidence outlives the version that wrote it: a value that is missing or
of another type becomes null, and so does a range without both ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field

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
    NOT_DETERMINABLE = (
        "not_determinable"  # no observed committed record is missing; the rest is unknown
    )


def number_of(value: object) -> int | None:
    """Return a value of evidence if it is a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(value: object) -> str | None:
    """Return a value of evidence if it is a text."""
    return value if isinstance(value, str) else None


def rows_of(value: object, name: str, fields: Iterable[str]) -> list[dict[str, Any]] | None:
    """Return the fields of the rows of evidence in which `name` is a text; None if there are no rows."""
    if not isinstance(value, list):
        return None
    rows = [row for row in value if isinstance(row, dict) and isinstance(row.get(name), str)]
    return [{field: row.get(field) for field in fields} for row in rows]


def _timestamp_of(value: object) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(timestamp, datetime):
        return None
    return None if timestamp.tzinfo is None else timestamp


Number = Annotated[int | None, BeforeValidator(number_of)]
Text = Annotated[str | None, BeforeValidator(text_of)]
Timestamp = Annotated[datetime | None, BeforeValidator(_timestamp_of)]


class GroupBeyond(Model):
    """A group that has committed beyond the end of the log."""

    group: str
    committed_offset: Number
    committed_leader_epoch: Number
    read_beyond: Annotated[Number, Field(description="Offsets that it read and are gone")]
    may_skip_offsets: Number
    """New offsets below its commit when the loss was found"""


class LossTransaction(Model):
    """A transaction that a loss affects."""

    transactional_id: str
    producer_id: Number
    committed_at: Timestamp


def _groups(value: object) -> list[dict[str, Any]] | None:
    return rows_of(value, "group", GroupBeyond.model_fields)


def _transactions(value: object) -> list[dict[str, Any]] | None:
    return rows_of(value, "transactional_id", LossTransaction.model_fields)


class LossFacts(Model):
    """Facts of a loss at one time.

    Ranges begin at `from` and end before `to`; offsets count markers and aborted records too.
    """

    reason: str
    election: Annotated[Text, Field(description="clean, unclean or not_known")]
    leader_before: Number
    leader_epoch_before: Number
    leader: Number
    leader_epoch: Number
    epoch_end: Number
    """Where the older epoch ended in the new leader's log"""
    former_leader_end: Number
    """Log end offset of the former leader itself, if it answered"""
    certain_from: Number
    """First offset that was committed when last seen and is gone"""
    certain_to: Number
    certain_offsets: Annotated[Number, Field(description="A lower bound, if there is any")]
    visible_to_read_committed: Number
    """Of the certain ones: read_committed consumers could read them"""
    possible_from: Number
    """First offset that is gone and may have been committed"""
    possible_to: Number
    possible_offsets: Number
    exact_from: Number
    """First offset that is gone, as the former leader logged when it came back"""
    exact_to: Number
    exact_offsets: Number
    """Usually an upper bound: its last records may never have been acknowledged"""
    proven_committed_offsets: Number
    """How many of the exact ones, from the first on, were committed"""
    former_leader: Annotated[Number, Field(description="The broker whose log lines show it")]
    sole_in_sync_since: Timestamp
    """When it logged that no other replica is in sync, by its own clock"""
    uncommitted_from: Number
    """First offset that is gone and was above the high watermark"""
    uncommitted_to: Number
    uncommitted_offsets: Number
    at_least_offsets: Number
    """Lower bound, as the commit of a group proves"""
    last_observation: Timestamp
    """The last one before the leader changed"""
    unknown_since: Timestamp
    """Records that were appended after this may be lost too, unobserved"""
    committed_offset: Number
    committed_leader_epoch: Number
    high_watermark: Number
    beyond_by: Number
    """By how much the commit lies above the high watermark"""
    groups_beyond: Annotated[list[GroupBeyond] | None, BeforeValidator(_groups)]
    """The first 20; null: they were not searched for"""
    group_count: Number
    open_transactions: Annotated[list[LossTransaction] | None, BeforeValidator(_transactions)]
    """Open on the partition when last seen, the first 20"""
    lost_transactions: Annotated[list[LossTransaction] | None, BeforeValidator(_transactions)]
    """Committed, but none of their records is left; the first 20"""
    lost_transaction_count: Number
    advice: Annotated[Text, Field(description="The first step that the rule recommends")]
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
