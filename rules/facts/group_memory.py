"""When each group was last active, so that a stopped consumer differs from an abandoned group.

A cluster has hundreds of groups that nobody uses any more: their offsets stay for a week. A group was
active when it had members, or when a commit of it advanced: some clients commit without being members.
A commit that goes back or is new may be a person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s, join_columns, take_columns
from rules.facts.commit_memory import CommitMemory, matching_commits
from rules.facts.groups import Group
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.unchanged_since import either

FORGOTTEN_AFTER: Final = timedelta(hours=24)  # of a group that no round could list


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupMemory:
    """One row per group; times in microseconds since 1970-01-01 UTC, by our own clock."""

    group_ids: tuple[str, ...]
    seen_us: Int64s  # the last observation that listed it
    active_us: Column  # the last observation that saw it active; absent: none since it is known
    epoch: Column  # of its members (KIP-848), as last described
    # 1 where members had joined it, 0 for a group that only commits, as last described
    joined: Column

    @classmethod
    def none(cls) -> GroupMemory:
        """Return the memory before the first round."""
        nothing = Column.absent(0)
        seen = np.zeros(0, np.int64)
        return cls(group_ids=(), seen_us=seen, active_us=nothing, epoch=nothing, joined=nothing)

    def active_of(self, groups: Sequence[Group]) -> Column:
        """Return when each of these groups was last active."""
        return self.active_us.take(self._find([group.group_id for group in groups]))

    def were_made_anew(self, groups: Sequence[Group]) -> Bools:
        """Mark the groups that were deleted and created again since they were remembered.

        An epoch only grows while a group exists, and a group that had members keeps its protocol type.
        """
        places = self._find([group.group_id for group in groups])
        epoch, joined = self.epoch.take(places), self.joined.take(places)
        now_epoch, now_joined = _epochs(groups), _have_joined(groups)
        is_younger = epoch.valid & now_epoch.valid & (now_epoch.values < epoch.values)
        was_left = joined.valid & now_joined.valid & (now_joined.values < joined.values)
        anew: Bools = is_younger | was_left
        return anew

    def _find(self, names: Sequence[str]) -> Int64s:
        place = {name: position for position, name in enumerate(self.group_ids)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def have_members(groups: Sequence[Group]) -> Column:
    """Return 1 for groups with members and 0 for those without; absent where it is not known.

    A group that was not described has the state of its listing.
    """
    return Column.of(_has_members(group) for group in groups)


def _has_members(group: Group) -> int | None:
    if group.member_count is not None:
        return int(group.member_count > 0)
    return None if group.state is None else int(group.state not in ("Empty", "Dead"))


def _epochs(groups: Sequence[Group]) -> Column:
    return Column.of(group.epoch for group in groups)


def _have_joined(groups: Sequence[Group]) -> Column:
    types = (group.protocol_type for group in groups)
    return Column.of(
        None if protocol_type is None else int(bool(protocol_type)) for protocol_type in types
    )


def advance_groups(
    snapshot: Snapshot, now_us: int, old: GroupMemory, commits: CommitMemory | None
) -> GroupMemory:
    """Return the memory one round later; `commits` are those of the round before."""
    members = have_members(snapshot.groups)
    works = (members.valid & (members.values == 1)) | _went_forward(snapshot, commits)
    before = old.active_of(snapshot.groups)
    places = old._find([group.group_id for group in snapshot.groups])  # noqa: SLF001 - its own kind
    epochs, joined = _epochs(snapshot.groups), _have_joined(snapshot.groups)
    fresh = GroupMemory(
        group_ids=tuple(group.group_id for group in snapshot.groups),
        seen_us=np.full(len(snapshot.groups), now_us, np.int64),
        active_us=Column(np.where(works, now_us, before.values), works | before.valid),
        epoch=either(epochs.valid, epochs, old.epoch.take(places)),
        joined=either(joined.valid, joined, old.joined.take(places)),
    )
    if snapshot.groups_complete:
        return fresh
    oldest = now_us - FORGOTTEN_AFTER // MICROSECOND
    return _add_missing_groups(fresh, old, old.seen_us > oldest)


def merge_groups(stored: GroupMemory, seen: GroupMemory) -> GroupMemory:
    """Merge the stored groups into memory."""
    places = stored._find(seen.group_ids)  # noqa: SLF001 - its own kind
    before = stored.active_us.take(places)
    mine = seen.active_us
    merged = GroupMemory(
        group_ids=seen.group_ids,
        seen_us=seen.seen_us,
        active_us=Column(np.maximum(mine.values, before.values), mine.valid | before.valid),
        epoch=either(seen.epoch.valid, seen.epoch, stored.epoch.take(places)),
        joined=either(seen.joined.valid, seen.joined, stored.joined.take(places)),
    )
    return _add_missing_groups(merged, stored, np.ones(len(stored.group_ids), np.bool_))


def _add_missing_groups(fresh: GroupMemory, old: GroupMemory, is_kept: Bools) -> GroupMemory:
    """Add the groups of `old` that `fresh` does not have."""
    names = set(fresh.group_ids)
    added = [
        place
        for place, name in enumerate(old.group_ids)
        if name not in names and bool(is_kept[place])
    ]
    if not added:
        return fresh
    both = join_columns(fresh, take_columns(old, np.array(added, np.int64)))
    return replace(both, group_ids=(*fresh.group_ids, *(old.group_ids[place] for place in added)))


def _went_forward(snapshot: Snapshot, old: CommitMemory | None) -> Bools:
    moved = np.zeros(len(snapshot.groups), np.bool_)
    if old is None or not len(snapshot.commits):
        return moved
    before = old.unchanged.values.take(matching_commits(snapshot, old, needs_id=False))
    forward = before.valid & (snapshot.commits.committed_offset > before.values)
    moved[snapshot.commits.group[forward]] = True
    return moved
