"""Which commits have been told to lie beyond what is there, so that each is told once.

A commit above the high watermark, or beyond the end of its own leader epoch, stays so until its
group commits again. It is an event of the round in which it is first seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.snapshot import Snapshot

# Topic id, or its name where brokers tell none; partition, group, committed offset.
CommitFact: TypeAlias = tuple[str, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMemory:
    """The commits that the last rounds saw beyond an end."""

    beyond_epoch_end: frozenset[CommitFact] = frozenset()
    beyond_log_end: frozenset[CommitFact] = frozenset()


def advance_losses(snapshot: Snapshot, old: LossMemory | None) -> LossMemory:
    """Return the memory one round later; what this round could not see is kept."""
    before = old or LossMemory()
    beyond_log = snapshot.commits.beyond_high_watermark(snapshot.offsets)
    beyond_epoch = np.flatnonzero(beyond_epoch_end(snapshot).valid)
    ends = _epoch_is_told(snapshot)
    watermarks = snapshot.offsets.high_watermark.take(snapshot.commits.row).valid
    return LossMemory(
        beyond_epoch_end=facts_of(snapshot, beyond_epoch.tolist())
        | _unseen(snapshot, before.beyond_epoch_end, ends),
        beyond_log_end=facts_of(snapshot, beyond_log.tolist())
        | _unseen(snapshot, before.beyond_log_end, watermarks),
    )


def losses_under(stored: LossMemory, seen: LossMemory) -> LossMemory:
    """Return the memory of a process that could read an earlier one's only after some rounds."""
    return LossMemory(
        beyond_epoch_end=stored.beyond_epoch_end | seen.beyond_epoch_end,
        beyond_log_end=stored.beyond_log_end | seen.beyond_log_end,
    )


def _epoch_is_told(snapshot: Snapshot) -> Bools:
    commits = snapshot.commits
    told: Bools = snapshot.epoch_ends.find(commits.row, commits.committed_leader_epoch) >= 0
    return told & snapshot.offsets.leader_epoch.valid[commits.row]


def _unseen(
    snapshot: Snapshot, told: frozenset[CommitFact], is_seen: Bools
) -> frozenset[CommitFact]:
    """Return what was told of commits that this round did not see, or whose end it did not see."""
    if not told:
        return told
    by_commit = {(topic, number, group) for topic, number, group, _ in told}
    now: dict[tuple[str, int, str], tuple[int, bool]] = {}
    for place in range(len(snapshot.commits)):
        topic, number, group, offset = fact_of(snapshot, place)
        if (topic, number, group) in by_commit:
            now[topic, number, group] = offset, bool(is_seen[place])
    whole, hidden = snapshot.commits_complete, snapshot.groups_without_commits
    kept: set[CommitFact] = set()
    for fact in told:
        topic, number, group, offset = fact
        found = now.get((topic, number, group))
        if found is None:
            is_kept = not whole or group in hidden
        else:
            is_kept = found[0] == offset and not found[1]
        if is_kept:
            kept.add(fact)
    return frozenset(kept)


def beyond_epoch_end(snapshot: Snapshot) -> Column:
    """Return by how much each commit lies beyond the end of the leader epoch that it was read in.

    Absent where it does not, or where that is not known. The client read those offsets in that
    epoch, and the present leader's log has them no more: at least so much is lost, unless the topic
    was created again. An epoch that is not committed, or not known to the leader, says nothing.
    Shape (commits,).
    """
    commits = snapshot.commits
    epoch = commits.committed_leader_epoch
    place = snapshot.epoch_ends.find(commits.row, epoch)
    beyond = Column.known(commits.committed_offset) - snapshot.epoch_ends.end_offset.take(place)
    present = snapshot.offsets.leader_epoch.take(commits.row)
    is_older = epoch.valid & present.valid & (epoch.values < present.values)
    return beyond.where(is_older & (beyond.values > 0))


def facts_of(snapshot: Snapshot, places: Iterable[int]) -> frozenset[CommitFact]:
    """Return what names the commits at these places."""
    return frozenset(fact_of(snapshot, place) for place in places)


def fact_of(snapshot: Snapshot, place: int) -> CommitFact:
    """Return what names one commit."""
    commits, row = snapshot.commits, int(snapshot.commits.row[place])
    name = snapshot.partitions.index.topic_partition(row)
    topic = snapshot.partitions.topic_id(row) or name.topic
    group = snapshot.groups[int(commits.group[place])].group_id
    return topic, name.partition, group, int(commits.committed_offset[place])


def is_new(snapshot: Snapshot, places: Int64s, told: frozenset[CommitFact]) -> list[bool]:
    """Return for each of these commits whether it was not told before."""
    return [fact_of(snapshot, place) not in told for place in places.tolist()]
