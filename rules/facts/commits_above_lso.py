"""Commits above the last stable offset, made by members: of groups that read uncommitted records.

Commits are read before the last stable offset, which only grows while one leader epoch lasts. A commit above
it was therefore above it when it was made. A person may reset a group without members to any offset, and
members that join then commit nothing else until the last stable offset has passed it: so only a commit counts
that went forward since the round before, while the group has members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias

import numpy as np

from rules.facts.column import Bools
from rules.facts.commit_memory import CommitMemory, matching_commits
from rules.facts.group_memory import have_members
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.last_observation import LastObservations
from rules.facts.matching import matching_rows
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND

REMEMBERED_FOR: Final = timedelta(hours=24)  # after the last such commit
MOST: Final = 1000  # groups and partitions, those seen last

GroupPartition: TypeAlias = tuple[str, TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAboveLso:
    """The last such commit of one group on one partition; times in microseconds since 1970-01-01 UTC."""

    topic_id: TopicId | None
    rounds: int  # that saw one
    first_seen_us: int
    last_seen_us: int
    committed_offset: int
    last_stable_offset: int  # read after the commit
    high_watermark: int


AboveLso: TypeAlias = Mapping[GroupPartition, CommitAboveLso]


def advance_above_lso(
    snapshot: Snapshot,
    now_us: int,
    old: AboveLso,
    commits: CommitMemory | None,
    observations: LastObservations | None,
) -> AboveLso:
    """Return the commits one round later; `commits` and `observations` are those of the round before."""
    oldest = now_us - REMEMBERED_FOR // MICROSECOND
    after = {name: each for name, each in old.items() if each.last_seen_us >= oldest}
    if commits is None or observations is None or not len(snapshot.commits):
        return after
    for place in np.flatnonzero(_mark(snapshot, commits, observations)).tolist():
        row = int(snapshot.commits.row[place])
        group = snapshot.groups[int(snapshot.commits.group[place])]
        name = group.group_id, snapshot.partitions.index.topic_partition(row)
        fresh = CommitAboveLso(
            topic_id=snapshot.partitions.topic_id(row),
            rounds=1,
            first_seen_us=now_us,
            last_seen_us=now_us,
            committed_offset=int(snapshot.commits.committed_offset[place]),
            last_stable_offset=int(snapshot.offsets.last_stable_offset.values[row]),
            high_watermark=int(snapshot.offsets.high_watermark.values[row]),
        )
        after[name] = _join(after.pop(name, None), fresh)
    return dict(list(after.items())[-MOST:])


def _mark(snapshot: Snapshot, before: CommitMemory, observations: LastObservations) -> Bools:
    """Mark the commits that prove it."""
    commits, offsets = snapshot.commits, snapshot.offsets
    stable, end = (
        offsets.last_stable_offset.take(commits.row),
        offsets.high_watermark.take(commits.row),
    )
    committed = commits.committed_offset
    is_above: Bools = stable.valid & end.valid & (committed > stable.values)
    is_above &= committed <= end.values
    if not is_above.any():
        return is_above
    last = before.unchanged.values.take(matching_commits(snapshot, before, needs_id=True))
    is_above &= last.valid & (committed > last.values)
    members = have_members(snapshot.groups).take(commits.group)
    is_above &= members.valid & (members.values == 1)
    is_position = np.zeros(len(commits), np.bool_)
    is_position[snapshot.offset_commits] = True
    return is_above & is_position & _has_same_leader(snapshot, observations)[commits.row]


def _has_same_leader(snapshot: Snapshot, observations: LastObservations) -> Bools:
    """Mark the rows that had the same leader epoch in the round before: a new leader may begin below."""
    rows = matching_rows(snapshot.partitions, observations.partitions)
    epoch, stable = snapshot.offsets.leader_epoch, snapshot.offsets.last_stable_offset
    old_epoch = observations.leader_epoch.take(rows)
    old_stable = observations.last_stable_offset.take(rows)
    same: Bools = epoch.valid & old_epoch.valid & (epoch.values == old_epoch.values)
    return same & old_stable.valid & (stable.values >= old_stable.values)


def _join(old: CommitAboveLso | None, new: CommitAboveLso) -> CommitAboveLso:
    if old is None or old.topic_id != new.topic_id:
        return new
    return replace(new, rounds=old.rounds + new.rounds, first_seen_us=old.first_seen_us)


def merge_above_lso(stored: AboveLso, seen: AboveLso) -> AboveLso:
    """Merge what an earlier process stored."""
    return {**stored, **{name: _join(stored.get(name), each) for name, each in seen.items()}}


def above_lso_with_times(above: AboveLso, change: Callable[[int], int]) -> AboveLso:
    """Return the commits with their times changed."""
    return {
        name: replace(
            each,
            first_seen_us=change(each.first_seen_us),
            last_seen_us=change(each.last_seen_us),
        )
        for name, each in above.items()
    }
