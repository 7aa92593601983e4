"""What is carried from round to round: last observations, and since when values are unchanged.

A rule such as "unchanged for a minute" would otherwise compare a window of snapshots in every round.
The memory is advanced once per round, costs one pass over the columns, and is what a restart needs.
What a round did not see keeps its older memory: a value, whether it should advance, and a topic that
an incomplete list left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np

from rules.facts.broker_memory import BrokerMemory, advance_brokers, merge_brokers
from rules.facts.change_memory import ChangeMemory, merge_changes
from rules.facts.client_memory import (
    ClientMemory,
    advance_clients,
    clients_with_times,
    latest_client_time,
    merge_clients,
)
from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import CommitMemory, advance_commits, merge_commits
from rules.facts.episodes import (
    SequenceMemory,
    latest_sequence_time,
    merge_sequences,
    sequences_with_times,
)
from rules.facts.fencing import (
    FencingMemory,
    fencing_with_times,
    latest_fencing_time,
    merge_fencing,
)
from rules.facts.group_memory import GroupMemory, advance_groups, merge_groups
from rules.facts.lag_objectives import ObjectiveMemory, merge_objectives
from rules.facts.last_observation import (
    LastObservations,
    merge_observations,
    microseconds,
    remember,
    unsettled_rows,
)
from rules.facts.loss_memory import (
    LossMemory,
    advance_losses,
    losses_with_times,
    merge_losses,
)
from rules.facts.matching import matching_rows
from rules.facts.member_memory import (
    MemberMemory,
    advance_members,
    latest_member_time,
    members_with_times,
    merge_members,
)
from rules.facts.partitions import Partitions
from rules.facts.replication_memory import (
    ReplicationMemory,
    advance_replication,
    merge_replication,
)
from rules.facts.snapshot import Snapshot
from rules.facts.suspicions import (
    SuspicionMemory,
    latest_suspicion_time,
    merge_suspicions,
    suspicions_with_times,
)
from rules.facts.transaction_costs import CostMemory, advance_costs
from rules.facts.transaction_memory import (
    TransactionMemory,
    advance_transactions,
    latest_time,
    merge_transactions,
    with_times,
)
from rules.facts.transactional_use import TransactionalUse, advance_transactional_use
from rules.facts.unchanged_since import UnchangedSince, advance_unchanged, keep_earlier

# Unlisted topics are forgotten after this time without an observation. Long, because the memory of a
# partition that is down is the only proof of what it loses when it returns.
UNLISTED_FORGOTTEN_AFTER: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """The memory of one cluster id."""

    cluster_id: str
    observations: LastObservations
    partitions: Partitions  # the rows of the next two; those of the snapshot, then unlisted ones
    high_watermark: UnchangedSince  # unchanged while the log end is ahead of it
    last_stable_offset: UnchangedSince  # unchanged while the high watermark is ahead of it
    commits: CommitMemory
    groups: GroupMemory = field(default_factory=GroupMemory.none)
    members: MemberMemory = field(default_factory=MemberMemory)
    transactions: TransactionMemory = field(default_factory=TransactionMemory)
    costs: CostMemory = field(default_factory=CostMemory)
    losses: LossMemory = field(default_factory=LossMemory)
    # Advanced by `rules.sequence.advance`, which needs the rest of this memory one round later.
    sequences: SequenceMemory = field(default_factory=SequenceMemory)
    # Advanced by `rules.fencing.advance`, likewise.
    fencing: FencingMemory = field(default_factory=FencingMemory)
    # Advanced by `rules.suspicion.advance`, after the sequences.
    suspicions: SuspicionMemory = field(default_factory=SuspicionMemory)
    # Advanced by `rules.objectives`, which needs the time lags of the round.
    objectives: ObjectiveMemory = field(default_factory=ObjectiveMemory.none)
    # By rows of `partitions`.
    replication: ReplicationMemory = field(default_factory=lambda: ReplicationMemory.absent(0))
    brokers: BrokerMemory = field(default_factory=BrokerMemory)
    # Advanced by `rules.changes.advance`.
    changes: ChangeMemory = field(default_factory=ChangeMemory)
    # Not stored: a process that starts anew sees them again.
    transactional_use: TransactionalUse = field(default_factory=TransactionalUse)
    clients: ClientMemory = field(default_factory=ClientMemory)
    taken_us: int = 0  # when the round began; 0: in an earlier process


def advance(snapshot: Snapshot, before: Memory | None = None) -> Memory:
    """Return the memory one round later; another cluster id starts an empty one."""
    now = microseconds(snapshot.taken_at)
    same = before if before is not None and before.cluster_id == snapshot.cluster_id else None
    old = None if same is None else _limit_times(same, now)
    partitions, offsets = _known_partitions(snapshot, old), snapshot.offsets
    unchanged = _unchanged_before(partitions, old)
    high_watermark = advance_unchanged(
        offsets.high_watermark.padded(len(partitions)),
        offsets.unreplicated_span.padded(len(partitions)),
        now,
        unchanged.high_watermark,
    )
    groups = advance_groups(
        snapshot, now, old.groups if old else GroupMemory.none(), old.commits if old else None
    )
    return Memory(
        cluster_id=snapshot.cluster_id,
        partitions=partitions,
        observations=remember(
            snapshot, old.observations if old else None, partitions, high_watermark
        ),
        high_watermark=high_watermark,
        last_stable_offset=advance_unchanged(
            offsets.last_stable_offset.padded(len(partitions)),
            offsets.open_span.padded(len(partitions)),
            now,
            unchanged.last_stable_offset,
        ),
        commits=advance_commits(snapshot, partitions, now, old.commits if old else None),
        groups=groups,
        members=advance_members(
            snapshot.groups,
            now,
            old.members if old else MemberMemory(),
            is_complete=snapshot.groups_complete,
            remembered=set(groups.group_ids),
        ),
        transactions=advance_transactions(
            snapshot, now, old.transactions if old else None, _mark_changed_leaders(snapshot, old)
        ),
        costs=advance_costs(snapshot, now, old.costs if old else CostMemory()),
        losses=advance_losses(snapshot, old.losses if old else None),
        sequences=old.sequences if old else SequenceMemory(),
        fencing=old.fencing if old else FencingMemory(),
        suspicions=old.suspicions if old else SuspicionMemory(),
        replication=advance_replication(snapshot.described, now, unchanged.replication),
        brokers=advance_brokers(snapshot, now, old.brokers if old else BrokerMemory()),
        changes=old.changes if old else ChangeMemory(),
        transactional_use=advance_transactional_use(
            snapshot,
            old.transactional_use if old else TransactionalUse(),
            old.observations if old else None,
        ),
        clients=advance_clients(
            snapshot,
            now,
            old.clients if old else ClientMemory(),
            old.commits if old else None,
            old.observations if old else None,
        ),
        taken_us=now,
    )


class _Unchanged(NamedTuple):
    """Since when values of each partition are unchanged."""

    high_watermark: UnchangedSince
    last_stable_offset: UnchangedSince
    replication: ReplicationMemory


def _unchanged_before(partitions: Partitions, old: Memory | None) -> _Unchanged:
    """Return what was remembered, by the rows of `partitions`."""
    if old is None:
        absent = UnchangedSince.absent(len(partitions))
        return _Unchanged(absent, absent, ReplicationMemory.absent(len(partitions)))
    rows = matching_rows(partitions, old.partitions, needs_id=False)
    return _Unchanged(
        old.high_watermark.take(rows),
        old.last_stable_offset.take(rows),
        old.replication.padded(len(old.partitions)).take(rows),
    )


def _mark_changed_leaders(snapshot: Snapshot, old: Memory | None) -> Bools:
    """Mark the partitions whose leader epoch is later than at the last observation."""
    if old is None:
        return np.zeros(len(snapshot.partitions), np.bool_)
    return unsettled_rows(old.observations, snapshot.partitions, snapshot.offsets.leader_epoch)


def _known_partitions(snapshot: Snapshot, old: Memory | None) -> Partitions:
    """Return the listed partitions and, if the list is not complete, those listed earlier."""
    if old is None or snapshot.placement_complete:
        return snapshot.partitions
    oldest = microseconds(snapshot.taken_at - UNLISTED_FORGOTTEN_AFTER)
    is_recent = _last_signs_of_life(old) > oldest
    left_out = [
        position for position in _list_left_out(snapshot.partitions, old) if is_recent[position]
    ]
    return snapshot.partitions.with_topics_of(old.partitions, left_out)


def _list_left_out(partitions: Partitions, old: Memory) -> list[int]:
    """Return the positions of the topics that are remembered and not among `partitions`."""
    listed = partitions.index.position_of_topic
    return [
        position
        for position, topic in enumerate(old.partitions.index.topics)
        if topic not in listed
    ]


def _last_signs_of_life(memory: Memory) -> Int64s:
    """Return per topic the latest time at which anything of it was observed, 0 where nothing was."""
    partitions, commits = memory.partitions, memory.commits
    rows = matching_rows(partitions, memory.observations.partitions, needs_id=False)
    latest = np.zeros(len(partitions.index.topics), np.int64)
    for times in (
        memory.observations.observed_at_us.take(rows),
        memory.high_watermark.since_us,
        memory.last_stable_offset.since_us,
    ):
        np.maximum.at(latest, partitions.index.topic_of_row, times.values)
    own = matching_rows(commits.partitions, partitions, needs_id=False)[commits.row]
    is_known = own >= 0
    of_commit = partitions.index.topic_of_row[own[is_known]]
    np.maximum.at(latest, of_commit, commits.seen_us[is_known])
    return latest


def merge_stored(stored: Memory, seen: Memory) -> Memory:
    """Merge the stored memory of an earlier process, which may be read some rounds after the start.

    New values count; a value that is the same as the stored one is unchanged since the stored time.
    Topics that were not seen are kept: the next complete list decides whether they are gone.
    """
    if stored.cluster_id != seen.cluster_id:
        return seen
    left_out = _list_left_out(seen.partitions, stored)
    partitions = seen.partitions.with_topics_of(stored.partitions, left_out)
    rows = matching_rows(partitions, stored.partitions, needs_id=False)

    def merge(unchanged: UnchangedSince, before: UnchangedSince) -> UnchangedSince:
        return keep_earlier(unchanged.padded(len(partitions)), before.take(rows))

    return Memory(
        cluster_id=seen.cluster_id,
        partitions=partitions,
        observations=merge_observations(stored.observations, seen.observations.over(partitions)),
        high_watermark=merge(seen.high_watermark, stored.high_watermark),
        last_stable_offset=merge(seen.last_stable_offset, stored.last_stable_offset),
        commits=merge_commits(stored.commits, replace(seen.commits, partitions=partitions)),
        groups=merge_groups(stored.groups, seen.groups),
        members=merge_members(stored.members, seen.members, seen.taken_us),
        transactions=merge_transactions(stored.transactions, seen.transactions),
        costs=seen.costs,
        losses=merge_losses(stored.losses, seen.losses),
        sequences=merge_sequences(stored.sequences, seen.sequences),
        fencing=merge_fencing(stored.fencing, seen.fencing),
        suspicions=merge_suspicions(stored.suspicions, seen.suspicions),
        objectives=merge_objectives(stored.objectives, seen.objectives),
        replication=merge_replication(
            stored.replication.padded(len(stored.partitions)).take(rows),
            seen.replication.padded(len(partitions)),
        ),
        brokers=merge_brokers(stored.brokers, seen.brokers),
        changes=merge_changes(stored.changes, seen.changes),
        transactional_use=seen.transactional_use,
        clients=merge_clients(stored.clients, seen.clients),
        taken_us=seen.taken_us,
    )


def shift_times(memory: Memory, by_us: int) -> Memory:
    """Return the memory with all its times shifted, so that durations survive a step of the clock."""
    shifted = _with_times(memory, lambda times: times + by_us, lambda timestamp: timestamp + by_us)
    return replace(shifted, objectives=memory.objectives.shifted(by_us))


def _limit_times(memory: Memory, now_us: int) -> Memory:
    """Limit times in the future to now: the clock was set back while Tidemark was not running.

    Durations would otherwise stay negative, and alerts be delayed, until the clock had caught up.
    """
    is_ahead = any(np.any(times.valid & (times.values > now_us)) for times in _times(memory))
    latest = max(
        latest_time(memory.transactions),
        latest_sequence_time(memory.sequences),
        latest_fencing_time(memory.fencing),
        latest_suspicion_time(memory.suspicions),
        latest_member_time(memory.members),
        memory.brokers.latest_us,
        memory.changes.state.latest_us,
        latest_client_time(memory.clients),
    )
    if not is_ahead and latest <= now_us:
        return memory
    return _with_times(
        memory, lambda times: np.minimum(times, now_us), lambda timestamp: min(timestamp, now_us)
    )


def _times(memory: Memory) -> tuple[Column, ...]:
    return (
        memory.observations.observed_at_us,
        memory.high_watermark.since_us,
        memory.last_stable_offset.since_us,
        memory.commits.unchanged.since_us,
        Column.known(memory.commits.seen_us),
        Column.known(memory.groups.seen_us),
        memory.groups.active_us,
        memory.sequences.leaderships.since_us,
        memory.replication.since_us,
        memory.replication.seen_us,
    )


def _with_times(
    memory: Memory, change: Callable[[Int64s], Int64s], change_one: Callable[[int], int]
) -> Memory:
    commits, observations = memory.commits, memory.observations
    return replace(
        memory,
        observations=replace(
            observations,
            observed_at_us=observations.observed_at_us.changed(change),
            context=observations.context.with_times(change),
        ),
        high_watermark=memory.high_watermark.with_times(change),
        last_stable_offset=memory.last_stable_offset.with_times(change),
        commits=replace(
            commits, unchanged=commits.unchanged.with_times(change), seen_us=change(commits.seen_us)
        ),
        groups=replace(
            memory.groups,
            seen_us=change(memory.groups.seen_us),
            active_us=memory.groups.active_us.changed(change),
        ),
        members=members_with_times(memory.members, change_one),
        transactions=with_times(memory.transactions, change_one),
        costs=memory.costs.with_times(change_one),
        losses=losses_with_times(memory.losses, change_one),
        sequences=sequences_with_times(memory.sequences, change_one, change),
        fencing=fencing_with_times(memory.fencing, change_one),
        suspicions=suspicions_with_times(memory.suspicions, change_one),
        replication=memory.replication.with_times(change),
        brokers=memory.brokers.with_times(change_one),
        changes=memory.changes.with_times(change_one),
        clients=clients_with_times(memory.clients, change_one),
        taken_us=change_one(memory.taken_us) if memory.taken_us else 0,
    )
