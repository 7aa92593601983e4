"""The last commit of every group on every partition, and since when each is unchanged.

A commit that a round does not show is forgotten if the round could see all commits, and otherwise
a day after it was last seen: where every round is incomplete, it would otherwise be kept for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Table, left_out
from rules.facts.commit_keys import CommitKeys
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.unchanged_since import UnchangedSince, advance_unchanged, either, keep_earlier

FORGOTTEN_AFTER: Final = timedelta(hours=24)  # as long as an event lasts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadableAnswers(Table):
    """Whether there was anything to read behind each commit, up to an end in a leader epoch.

    Within one epoch nothing changes below the end, so that a restart need not scan the logs again.
    """

    answer: Column  # as `Commits.nothing_to_read`; absent also where the lag is zero
    end: Int64s  # last stable offset
    epoch: Int64s  # of the leader

    @classmethod
    def none(cls, rows: int) -> ReadableAnswers:
        """Return that nothing is known."""
        nothing = np.zeros(rows, np.int64)
        return cls(answer=Column.absent(rows), end=nothing, epoch=nothing)

    @classmethod
    def of(cls, snapshot: Snapshot) -> ReadableAnswers:
        """Return the answers of a round."""
        commits, offsets = snapshot.commits, snapshot.offsets
        end = offsets.last_stable_offset.take(commits.row)
        epoch = offsets.leader_epoch.take(commits.row)
        is_behind = end.valid & epoch.valid & (end.values > commits.committed_offset)
        answer = commits.nothing_to_read.where(is_behind)
        return cls(
            answer=answer,
            end=np.where(answer.valid, end.values, 0),
            epoch=np.where(answer.valid, epoch.values, 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitMemory(CommitKeys):
    """The last commit of every (group, partition); one row per pair, ordered by group and row."""

    unchanged: UnchangedSince
    seen_us: Int64s  # when each was last seen, microseconds since 1970-01-01 UTC
    # The log start offset, where the commit was below it when both were last seen; absent: not below.
    expired_below: Column
    readable: ReadableAnswers

    @classmethod
    def none(cls) -> CommitMemory:
        """Return the memory of a cluster without commits."""
        nothing = np.zeros(0, np.int64)
        return cls(
            partitions=Partitions.none(),
            group_ids=(),
            group=nothing,
            row=nothing,
            unchanged=UnchangedSince.absent(0),
            seen_us=nothing,
            expired_below=Column.absent(0),
            readable=ReadableAnswers.none(0),
        )

    @property
    def keys(self) -> CommitKeys:
        """Return the pairs without their values."""
        return CommitKeys(
            partitions=self.partitions, group_ids=self.group_ids, group=self.group, row=self.row
        )


def matching_commits(snapshot: Snapshot, old: CommitMemory, *, needs_id: bool = False) -> Int64s:
    """Return for each commit of the snapshot its position in the memory, -1 where none.

    A proof by the two values needs the topic id on both sides (`needs_id`).
    """
    return old.find(snapshot.partitions, snapshot.groups, snapshot.commits, needs_id=needs_id)


def groups_with_hidden_commits(snapshot: Snapshot, remembered: CommitMemory) -> frozenset[str]:
    """Return the groups that have a remembered commit which this round did not read."""
    if len(remembered) == len(snapshot.commits):
        return frozenset()
    is_hidden = left_out(len(remembered), matching_commits(snapshot, remembered))
    groups = np.unique(remembered.group[is_hidden]).tolist()
    return frozenset(remembered.group_ids[group] for group in groups)


def advance_commits(
    snapshot: Snapshot, partitions: Partitions, now_us: int, old: CommitMemory | None
) -> CommitMemory:
    """Return the memory one round later; the rows of `partitions` begin with those of the snapshot."""
    commits = snapshot.commits
    places = np.full(len(commits), -1, np.int64) if old is None else matching_commits(snapshot, old)
    fresh = CommitMemory(
        partitions=partitions,
        group_ids=tuple(group.group_id for group in snapshot.groups),
        group=commits.group,
        row=commits.row,
        unchanged=advance_unchanged(
            Column.known(commits.committed_offset),
            commits.read_uncommitted_lag(snapshot.offsets),
            now_us,
            UnchangedSince.absent(len(commits)) if old is None else old.unchanged.take(places),
        ),
        seen_us=np.full(len(commits), now_us, np.int64),
        expired_below=_expired_below(snapshot, places, old),
        readable=ReadableAnswers.of(snapshot),
    )
    if old is None:
        return fresh
    return _with_unseen(
        fresh, old, left_out(len(old), places) & _may_be_there(snapshot, now_us, old)
    )


def merge_commits(stored: CommitMemory, seen: CommitMemory) -> CommitMemory:
    """Merge the stored commits into memory.

    A commit that is lower now keeps its stored value, so that the next round detects the rewind.
    """
    places = stored.find_keys(seen)
    old = stored.unchanged.take(places)
    was_higher = old.values.valid & (old.values.values > seen.unchanged.values.values)
    merged = keep_earlier(seen.unchanged, old)
    unchanged = UnchangedSince(
        either(was_higher, old.values, merged.values),
        either(was_higher, old.since_us, merged.since_us),
    )
    stored_below = stored.expired_below.take(places)
    is_below = (
        ~seen.expired_below.valid
        & stored_below.valid
        & (seen.unchanged.values.values < stored_below.values)
    )
    merged_seen = replace(
        seen,
        unchanged=unchanged,
        expired_below=either(is_below, stored_below, seen.expired_below),
        # The answer is about the commit that is lower now.
        readable=replace(seen.readable, answer=seen.readable.answer.where(~was_higher)),
    )
    return _with_unseen(merged_seen, stored, left_out(len(stored), places))


def _expired_below(snapshot: Snapshot, places: Int64s, old: CommitMemory | None) -> Column:
    """Return the log start where it is above the commit; the remembered one where it was not observed."""
    commits = snapshot.commits
    log_start = snapshot.offsets.log_start_offset.take(commits.row)
    below = log_start.where(commits.committed_offset < log_start.values)
    return below if old is None else either(log_start.valid, below, old.expired_below.take(places))


def _may_be_there(snapshot: Snapshot, now_us: int, old: CommitMemory) -> Bools:
    """Mark the remembered commits that may exist although this round does not show them."""
    recent: Bools = old.seen_us > now_us - FORGOTTEN_AFTER // MICROSECOND
    if not snapshot.commits_complete:
        return recent
    hidden = snapshot.groups_without_commits
    is_hidden = np.array([name in hidden for name in old.group_ids], np.bool_)
    return recent & is_hidden[old.group] if len(old) else recent


def _with_unseen(fresh: CommitMemory, old: CommitMemory, unseen: Bools) -> CommitMemory:
    """Add the older commits marked by `unseen` whose partitions still exist."""
    back = matching_rows(old.partitions, fresh.partitions, needs_id=False)  # old row -> fresh row
    added = np.flatnonzero(unseen & (back[old.row] >= 0)).astype(np.int64)
    if not len(added):
        return fresh
    added_groups = [old.group_ids[group] for group in np.unique(old.group[added]).tolist()]
    names = tuple(dict.fromkeys((*fresh.group_ids, *added_groups)))
    place = {name: position for position, name in enumerate(names)}
    renamed = np.array([place.get(name, -1) for name in old.group_ids], np.int64)
    unseen_commits = replace(
        old.take(added), group=renamed[old.group[added]], row=back[old.row[added]]
    )
    both = fresh.joined(unseen_commits)
    codes = both.group * max(len(fresh.partitions), 1) + both.row
    order = np.argsort(codes, kind="stable").astype(np.int64)
    return replace(both.take(order), group_ids=names)
