"""The evidence of losses: its names and types, declared once for the rules, the summary and the API.

An absent value and None are different things: None retracts what was reported before.
`service.api.losses.models.LossFacts` says what the fields mean; times are texts, in UTC.
"""

from __future__ import annotations

from typing import TypedDict


class _NamedGroup(TypedDict):
    group: str


class GroupBeyond(_NamedGroup, total=False):
    """A group that has committed beyond the end of the log."""

    committed_offset: int
    committed_leader_epoch: int | None
    read_beyond: int
    may_skip_offsets: int | None


class GroupGoneOn(_NamedGroup):
    """A group that has committed in the new leader's epoch since."""

    committed_offset: int


class _NamedTransaction(TypedDict):
    transactional_id: str


class LossTransaction(_NamedTransaction, total=False):
    """A transaction that a loss affects."""

    producer_id: int
    committed_at: str


class SummaryEvidence(TypedDict, total=False):
    """What the summary of an incident reads."""

    incident: str | None
    leader_before: int | None
    last_observation: str | None
    certain_offsets: int | None
    proven_committed_offsets: int | None
    at_least_offsets: int


class LossEvidence(SummaryEvidence, total=False):
    """The evidence of a loss."""

    topic_id: str | None
    election: str
    leader_epoch_before: int
    leader: int | None
    leader_epoch: int | None
    epoch_end: int
    former_leader_end: int | None
    certain_from: int | None
    certain_to: int | None
    visible_to_read_committed: int | None
    possible_from: int | None
    possible_to: int | None
    possible_offsets: int | None
    exact_from: int | None
    exact_to: int | None
    exact_offsets: int | None
    former_leader: int | None
    sole_in_sync_since: str | None
    uncommitted_from: int | None
    uncommitted_to: int | None
    uncommitted_offsets: int | None
    unknown_since: str | None
    committed_offset: int
    committed_leader_epoch: int | None
    high_watermark: int | None
    beyond_by: int
    groups_beyond: list[GroupBeyond]
    group_count: int
    groups_gone_on: list[GroupGoneOn]
    open_transactions: list[LossTransaction]
    lost_transactions: list[LossTransaction]
    lost_transaction_count: int
    restored_from: int
    restored_to: int
    restored_in_epoch: int | None
    never_observed: bool  # the leader that failed was never observed
    unclean_elections_counted: (
        int | None
    )  # by controllers, in the time of a new partition's election
    proven_by: str  # the rule that has the proven loss
    advice: str | None
