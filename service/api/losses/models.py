"""What the API answers about losses; absent values are null, never 0 or -1."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from rules.open_findings import EndReason
from rules.verdict import Severity
from service.api.core.models import FindingState, Model, NextCursor, Stamped
from service.rounds.persistence import PersistenceState


class LossClass(StrEnum):
    """What is known of a loss; one rule each, but for the last one."""

    COMMITTED_LOST = "committed_lost"  # proven
    POSSIBLY_LOST = "possibly_lost"  # nobody who is left can tell how many
    UNREPLICATED_LOST = "unreplicated_lost"  # never committed; lost to producers with acks=1 or 0
    UNCLEAN_ELECTION = "unclean_election"  # how it could come to it
    COMMITTED_BEYOND_LOG_END = "committed_beyond_log_end"  # a group has read what is not there
    NOT_DETERMINABLE = (
        "not_determinable"  # nothing committed that was seen is missing; the rest is open
    )


class GroupBeyond(Model):
    """A group that has committed beyond what is left."""

    group: str
    committed_offset: int | None
    committed_leader_epoch: int | None
    read_beyond: Annotated[int | None, Field(description="Offsets that it read and are gone")]
    may_skip_offsets: Annotated[
        int | None, Field(description="New offsets below its commit, when this was found")
    ]


class LossTransaction(Model):
    """A transaction that a loss concerns."""

    transactional_id: str
    producer_id: int | None
    committed_at: datetime | None


class LossFacts(Model):
    """What was found at one time. Ranges begin with `from` and end before `to`; offsets count
    markers and aborted records too.
    """

    reason: str
    election: Annotated[str | None, Field(description="clean, unclean or not_known")]
    leader_before: int | None
    leader_epoch_before: int | None
    leader: int | None
    leader_epoch: int | None
    epoch_end: Annotated[
        int | None, Field(description="Where the older epoch ended in the new leader's log")
    ]
    former_leader_end: Annotated[
        int | None,
        Field(description="What the older leader itself still had, if it could be asked"),
    ]
    certain_from: Annotated[
        int | None, Field(description="Committed when last seen, and gone: from here")
    ]
    certain_to: int | None
    certain_offsets: Annotated[int | None, Field(description="A lower bound, if there is any")]
    visible_to_read_committed: Annotated[
        int | None, Field(description="Of the certain ones: read_committed readers could have them")
    ]
    possible_from: Annotated[int | None, Field(description="Gone, may have been committed")]
    possible_to: int | None
    possible_offsets: int | None
    exact_from: Annotated[
        int | None, Field(description="All that is gone, as the old leader told when it came back")
    ]
    exact_to: int | None
    exact_offsets: Annotated[
        int | None,
        Field(description="In general an upper bound: its last records may never be acknowledged"),
    ]
    proven_committed_offsets: Annotated[
        int | None,
        Field(description="Of the exact ones so many, from the first on, were committed"),
    ]
    former_leader: Annotated[int | None, Field(description="The broker whose log lines tell it")]
    sole_in_sync_since: Annotated[
        datetime | None,
        Field(description="When it wrote that no other replica is in sync, by its own clock"),
    ]
    uncommitted_from: Annotated[
        int | None, Field(description="Gone, was above the high watermark when last seen")
    ]
    uncommitted_to: int | None
    uncommitted_offsets: int | None
    at_least_offsets: Annotated[
        int | None, Field(description="Gone, as the commit of a group proves")
    ]
    last_observation: Annotated[datetime | None, Field(description="Before the leader changed")]
    unknown_since: Annotated[
        datetime | None, Field(description="What was appended after this may be lost too, unseen")
    ]
    committed_offset: int | None
    committed_leader_epoch: int | None
    high_watermark: int | None
    beyond_by: Annotated[
        int | None, Field(description="By how much the commit lies above the high watermark")
    ]
    groups_beyond: Annotated[
        list[GroupBeyond] | None, Field(description="The first 20; null: it was not searched for")
    ]
    group_count: int | None
    open_transactions: Annotated[
        list[LossTransaction] | None, Field(description="Open there when last seen, the first 20")
    ]
    lost_transactions: Annotated[
        list[LossTransaction] | None,
        Field(description="Committed, and nothing of them is left there; the first 20"),
    ]
    lost_transaction_count: int | None
    advice: Annotated[str | None, Field(description="What the rule says to do first")]
    more: Annotated[dict[str, Any], Field(description="Evidence that has no field of its own")]


class Loss(LossFacts):
    """A finding of lost records as it is; its facts are those of the last time."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    id: Annotated[str, Field(description="That of the finding: /findings has it too")]
    class_: Annotated[LossClass, Field(alias="class")]
    severity: Severity
    cluster: str | None
    cluster_id: str | None
    topic: str | None
    partition: int | None
    topic_id: str | None
    group: Annotated[
        str | None, Field(description="Whose commit it is; only committed_beyond_log_end has one")
    ]
    since: datetime
    last_happened_at: Annotated[
        datetime, Field(description="Later than since: it happened more than once")
    ]
    state: FindingState
    subject_gone: Annotated[bool, Field(description="Its topic was deleted since")]
    ended_at: datetime | None
    end_reason: EndReason | None
    incident: Annotated[
        str | None, Field(description="null: found by a version that knew no incidents")
    ]
    next_steps: Annotated[list[str], Field(description="What to do, in this order")]


class AlsoFound(Model):
    """What another rule says of the same partition in the same incident."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    id: str
    class_: Annotated[LossClass, Field(alias="class")]
    reason: str
    severity: Severity
    state: FindingState
    group: Annotated[str | None, Field(description="Of committed_beyond_log_end")]


class PartitionLoss(Loss):
    """What became of one partition: as the rule tells it that knows most."""

    also: Annotated[list[AlsoFound], Field(description="What the other rules say of it")]


class LossIncident(Model):
    """What one broker's loss of leadership did, on all partitions that it had led."""

    id: str
    summary: Annotated[str, Field(description="What it comes to, in a sentence")]
    severity: Severity
    broker: Annotated[int | None, Field(description="Who had led; null: not one that is known")]
    since: Annotated[datetime, Field(description="When the first of its changes was found")]
    last_happened_at: datetime
    last_observation: Annotated[
        datetime | None, Field(description="When the first of them was last seen under that leader")
    ]
    state: FindingState
    partition_count: int
    lost_partitions: Annotated[int, Field(description="Committed records are gone for certain")]
    certain_offsets: Annotated[int, Field(description="Of those, a lower bound")]
    possibly_lost_partitions: int
    partitions: Annotated[list[PartitionLoss], Field(description="The worst first, 1000 at most")]


class LossPage(Stamped):
    """Incidents, the worst first, then the newest."""

    items: list[LossIncident]
    next: NextCursor
    is_cut: Annotated[
        bool, Field(description="Of the database the newest 5000 findings that match are shown")
    ]
    storage: Annotated[
        PersistenceState,
        Field(description="not_loaded: losses of an earlier process may be missing"),
    ]


class LossEvent(LossFacts):
    """One of the times at which a loss was found, with what was known of it."""

    at: datetime


class LossDetail(Stamped):
    """A loss, and each time that it happened, oldest first."""

    loss: Loss
    events: Annotated[
        list[LossEvent] | None, Field(description="null while the database cannot tell them")
    ]
    error: Annotated[str | None, Field(description="Why there are no events")]
    storage: PersistenceState
