"""What is carried from round to round: last observations, and since when values have stood still.

A rule that asks "has it moved within a minute?" would otherwise compare a window of snapshots in
every round. The memory is advanced once per round, costs one pass over the columns, and is what a
restart needs. What a round did not see keeps its older memory: a value, what waits for it, and a
topic that an incomplete list left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import CommitMemory, advance_commits, commits_under
from rules.facts.episodes import (
    SequenceMemory,
    latest_sequence_time,
    sequences_under,
    sequences_with_times,
)
from rules.facts.group_memory import GroupMemory, advance_groups, groups_under
from rules.facts.last_observation import (
    LastObservations,
    microseconds,
    observations_under,
    remember,
    unsettled_rows,
)
from rules.facts.loss_memory import (
    LossMemory,
    advance_losses,
    losses_under,
    losses_with_times,
)
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_memory import (
    TransactionMemory,
    advance_transactions,
    latest_time,
    transactions_under,
    with_times,
)
from rules.facts.unchanged_since import UnchangedSince, earlier, stand

# Topics that no list shows are forgotten so long after their last sign of life. Long, because what
# is remembered of a partition that is down is the only proof of what it loses when it comes back.
UNLISTED_FORGOTTEN_AFTER: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """All that is remembered of one cluster id."""

    cluster_id: str
    observations: LastObservations
    partitions: Partitions  # the rows of the next two; those of the snapshot, then unlisted ones
    high_watermark: UnchangedSince  # unchanged while the log end is ahead of it
    last_stable_offset: UnchangedSince  # unchanged while the high watermark is ahead of it
    commits: CommitMemory
    groups: GroupMemory = field(default_factory=GroupMemory.none)
    transactions: TransactionMemory = field(default_factory=TransactionMemory)
    losses: LossMemory = field(default_factory=LossMemory)
    # Advanced by `rules.sequence.advance`, which needs the rest of this memory one round later.
    sequences: SequenceMemory = field(default_factory=SequenceMemory)
    taken_us: int = 0  # when the round began; 0: in an earlier process


def advance(snapshot: Snapshot, before: Memory | None = None) -> Memory:
    """Return the memory one round later; another cluster id starts an empty one."""
    now = microseconds(snapshot.taken_at)
    same = before if before is not None and before.cluster_id == snapshot.cluster_id else None
    old = None if same is None else _not_after(same, now)
    known, offsets = _known_partitions(snapshot, old), snapshot.offsets
    rows = (
        np.full(len(known), -1, np.int64)
        if old is None
        else matching_rows(known, old.partitions, needs_id=False)
    )

    def stood(values: Column, span: Column, before: UnchangedSince | None) -> UnchangedSince:
        unchanged = UnchangedSince.absent(len(known)) if before is None else before.take(rows)
        return stand(values.padded(len(known)), span.padded(len(known)), now, unchanged)

    high_watermark = stood(
        offsets.high_watermark, offsets.unreplicated_span, old.high_watermark if old else None
    )
    return Memory(
        cluster_id=snapshot.cluster_id,
        partitions=known,
        observations=remember(snapshot, old.observations if old else None, known, high_watermark),
        high_watermark=high_watermark,
        last_stable_offset=stood(
            offsets.last_stable_offset, offsets.open_span, old.last_stable_offset if old else None
        ),
        commits=advance_commits(snapshot, known, now, old.commits if old else None),
        groups=advance_groups(
            snapshot, now, old.groups if old else GroupMemory.none(), old.commits if old else None
        ),
        transactions=advance_transactions(
            snapshot, now, old.transactions if old else None, _changed(snapshot, old)
        ),
        losses=advance_losses(snapshot, old.losses if old else None),
        sequences=old.sequences if old else SequenceMemory(),
        taken_us=now,
    )


def _changed(snapshot: Snapshot, old: Memory | None) -> Bools:
    """Mark the partitions whose leader epoch is another one than at the last observation."""
    if old is None:
        return np.zeros(len(snapshot.partitions), np.bool_)
    return unsettled_rows(old.observations, snapshot.partitions, snapshot.offsets.leader_epoch)


def _known_partitions(snapshot: Snapshot, old: Memory | None) -> Partitions:
    """Return the partitions that are listed and, if the list is not complete, those that were."""
    if old is None or snapshot.placement_complete:
        return snapshot.partitions
    oldest = microseconds(snapshot.taken_at - UNLISTED_FORGOTTEN_AFTER)
    is_recent = _last_signs_of_life(old) > oldest
    left_out = [position for position in _left_out(snapshot.partitions, old) if is_recent[position]]
    return snapshot.partitions.with_topics_of(old.partitions, left_out)


def _left_out(partitions: Partitions, old: Memory) -> list[int]:
    """Return the positions of the topics that are remembered and not among `partitions`."""
    listed = partitions.index.position_of_topic
    return [
        position
        for position, topic in enumerate(old.partitions.index.topics)
        if topic not in listed
    ]


def _last_signs_of_life(memory: Memory) -> Int64s:
    """Return per topic when something of it was last seen, 0 where nothing ever was."""
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


def laid_under(stored: Memory, seen: Memory) -> Memory:
    """Return the memory of a process that could read an earlier one's only after some rounds.

    What was seen counts. It has stood since the earlier time where it was the same before. Topics
    that were not seen are kept: the next complete list says whether they are gone.
    """
    if stored.cluster_id != seen.cluster_id:
        return seen
    left_out = _left_out(seen.partitions, stored)
    known = seen.partitions.with_topics_of(stored.partitions, left_out)
    rows = matching_rows(known, stored.partitions, needs_id=False)

    def under(unchanged: UnchangedSince, before: UnchangedSince) -> UnchangedSince:
        return earlier(unchanged.padded(len(known)), before.take(rows))

    return Memory(
        cluster_id=seen.cluster_id,
        partitions=known,
        observations=observations_under(stored.observations, seen.observations.over(known)),
        high_watermark=under(seen.high_watermark, stored.high_watermark),
        last_stable_offset=under(seen.last_stable_offset, stored.last_stable_offset),
        commits=commits_under(stored.commits, replace(seen.commits, partitions=known)),
        groups=groups_under(stored.groups, seen.groups),
        transactions=transactions_under(stored.transactions, seen.transactions),
        losses=losses_under(stored.losses, seen.losses),
        sequences=sequences_under(stored.sequences, seen.sequences),
        taken_us=seen.taken_us,
    )


# ------------------------------------------------------------------ the clock was set
def shifted(memory: Memory, by_us: int) -> Memory:
    """Return the memory with all its times moved, so that durations survive a step of the clock."""
    return _with_times(memory, lambda times: times + by_us, lambda timestamp: timestamp + by_us)


def _not_after(memory: Memory, now_us: int) -> Memory:
    """Pull times of the future back to now: the clock was set back while nobody watched.

    What is open would otherwise not be told before the clock had caught up.
    """
    is_ahead = any(np.any(times.valid & (times.values > now_us)) for times in _times(memory))
    latest = max(latest_time(memory.transactions), latest_sequence_time(memory.sequences))
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
    )


def _with_times(
    memory: Memory, change: Callable[[Int64s], Int64s], change_one: Callable[[int], int]
) -> Memory:
    def changed(times: Column) -> Column:
        return Column(np.where(times.valid, change(times.values), 0), times.valid)

    def moved(unchanged: UnchangedSince) -> UnchangedSince:
        return UnchangedSince(unchanged.values, changed(unchanged.since_us))

    commits, observations = memory.commits, memory.observations
    context = replace(
        observations.context,
        high_watermark=moved(observations.context.high_watermark),
        isr_reported_us=changed(observations.context.isr_reported_us),
        succeeded_us=changed(observations.context.succeeded_us),
    )
    return replace(
        memory,
        observations=replace(
            observations, observed_at_us=changed(observations.observed_at_us), context=context
        ),
        high_watermark=moved(memory.high_watermark),
        last_stable_offset=moved(memory.last_stable_offset),
        commits=replace(
            commits, unchanged=moved(commits.unchanged), seen_us=change(commits.seen_us)
        ),
        groups=replace(
            memory.groups,
            seen_us=change(memory.groups.seen_us),
            active_us=changed(memory.groups.active_us),
        ),
        transactions=with_times(memory.transactions, change_one),
        losses=losses_with_times(memory.losses, change_one),
        sequences=sequences_with_times(memory.sequences, change_one, change),
        taken_us=change_one(memory.taken_us) if memory.taken_us else 0,
    )
