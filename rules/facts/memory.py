"""What is carried from round to round: last looks, and since when values have stood still.

A rule that asks "has it moved within a minute?" would otherwise compare a window of snapshots in
every round. The memory is advanced once per round, costs one pass over the columns, and is what a
restart needs. What a round did not see keeps its older memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_keys import CommitKeys
from rules.facts.groups import Commits
from rules.facts.history import matching_rows
from rules.facts.last_look import LastLooks, looks_under, microseconds, remember
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Values, and since when each has stood where it is while it should have moved.

    `since_us` is absent where the value may rest: nothing is waiting for it.
    """

    values: Column
    since_us: Column  # microseconds since 1970-01-01 UTC


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitMemory:
    """The last commit of every (group, partition); one row per pair, ordered by group and row."""

    partitions: Partitions
    group_ids: tuple[str, ...]
    group: Int64s
    row: Int64s
    standing: Standing

    def __len__(self) -> int:
        return len(self.row)

    @property
    def keys(self) -> CommitKeys:
        """Return the pairs without their values."""
        return CommitKeys(
            partitions=self.partitions, group_ids=self.group_ids, group=self.group, row=self.row
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """All that is remembered of one cluster id."""

    cluster_id: str
    looks: LastLooks
    partitions: Partitions  # the rows of the next two
    high_watermark: Standing  # stands while the log end is ahead of it
    last_stable_offset: Standing  # stands while the high watermark is ahead of it
    commits: CommitMemory


def advance(snapshot: Snapshot, before: Memory | None = None) -> Memory:
    """Return the memory one round later; another cluster id starts an empty one."""
    same = before if before is not None and before.cluster_id == snapshot.cluster_id else None
    old = None if same is None else _not_after(same, microseconds(snapshot.taken_at))
    if old is not None and not snapshot.placement_complete and not len(snapshot.partitions):
        return old  # nothing was seen, and nothing may be forgotten
    now = microseconds(snapshot.taken_at)
    offsets, partitions = snapshot.offsets, snapshot.partitions
    rows = (
        np.full(len(partitions), -1, np.int64)
        if old is None
        else matching_rows(partitions, old.partitions)
    )
    return Memory(
        cluster_id=snapshot.cluster_id,
        partitions=partitions,
        looks=remember(snapshot, old.looks if old else None),
        high_watermark=_stand(
            offsets.high_watermark,
            _positive(offsets.unreplicated_span),
            now,
            _taken(old.high_watermark if old else None, rows),
        ),
        last_stable_offset=_stand(
            offsets.last_stable_offset,
            _positive(offsets.open_span),
            now,
            _taken(old.last_stable_offset if old else None, rows),
        ),
        commits=_advance_commits(snapshot, now, old.commits if old else None),
    )


def laid_under(stored: Memory, seen: Memory) -> Memory:
    """Return the memory of a process that could read an earlier one's only after some rounds.

    What was seen counts. It has stood since the earlier time where it was the same before, and a
    commit that is lower now is left as it was stored, so that the next round finds the rewind.
    """
    if stored.cluster_id != seen.cluster_id:
        return seen
    rows = matching_rows(seen.partitions, stored.partitions)
    return replace(
        seen,
        looks=looks_under(stored.looks, seen.looks),
        high_watermark=_earlier(seen.high_watermark, _taken(stored.high_watermark, rows)),
        last_stable_offset=_earlier(
            seen.last_stable_offset, _taken(stored.last_stable_offset, rows)
        ),
        commits=_commits_under(stored.commits, seen.commits),
    )


def _earlier(seen: Standing, stored: Standing) -> Standing:
    """Take the earlier time where a value is the same, and what is stored where none was seen."""
    is_same = seen.values.valid & stored.values.valid
    is_same &= seen.values.values == stored.values.values
    both = is_same & seen.since_us.valid & stored.since_us.valid
    unseen = ~seen.values.valid
    since = np.where(
        both, np.minimum(seen.since_us.values, stored.since_us.values), seen.since_us.values
    )
    return Standing(
        _either(unseen, stored.values, seen.values),
        _either(unseen, stored.since_us, Column(since, seen.since_us.valid)),
    )


def _commits_under(stored: CommitMemory, seen: CommitMemory) -> CommitMemory:
    places = stored.keys.find_keys(seen.keys)
    old = _taken(stored.standing, places)
    was_higher = old.values.valid & (old.values.values > seen.standing.values.values)
    merged = _earlier(seen.standing, old)
    standing = Standing(
        _either(was_higher, old.values, merged.values),
        _either(was_higher, old.since_us, merged.since_us),
    )
    return _with_unseen(replace(seen, standing=standing), stored, places)


def _either(mask: Bools, there: Column, otherwise: Column) -> Column:
    return Column(
        np.where(mask, there.values, otherwise.values), np.where(mask, there.valid, otherwise.valid)
    )


# ------------------------------------------------------------------ the clock was set
def shifted(memory: Memory, by_us: int) -> Memory:
    """Return the memory with all its times moved, so that durations survive a step of the clock."""
    return _with_times(memory, lambda times: times + by_us)


def _not_after(memory: Memory, now_us: int) -> Memory:
    """Pull times of the future back to now: the clock was set back while nobody watched.

    What stands would otherwise not be told before the clock had caught up.
    """
    is_ahead = any(np.any(times.valid & (times.values > now_us)) for times in _times(memory))
    return _with_times(memory, lambda times: np.minimum(times, now_us)) if is_ahead else memory


def _times(memory: Memory) -> tuple[Column, ...]:
    return (
        memory.looks.looked_at_us,
        memory.high_watermark.since_us,
        memory.last_stable_offset.since_us,
        memory.commits.standing.since_us,
    )


def _with_times(memory: Memory, change: Callable[[Int64s], Int64s]) -> Memory:
    def changed(times: Column) -> Column:
        return Column(np.where(times.valid, change(times.values), 0), times.valid)

    def moved(standing: Standing) -> Standing:
        return Standing(standing.values, changed(standing.since_us))

    return replace(
        memory,
        looks=replace(memory.looks, looked_at_us=changed(memory.looks.looked_at_us)),
        high_watermark=moved(memory.high_watermark),
        last_stable_offset=moved(memory.last_stable_offset),
        commits=replace(memory.commits, standing=moved(memory.commits.standing)),
    )


# ------------------------------------------------------------------ partitions
def _stand(values: Column, waits: Bools, now_us: int, old: Standing) -> Standing:
    """Carry `since` on where the value is the same and still waits; unseen rows keep the old."""
    same = values.valid & old.values.valid & (values.values == old.values.values)
    goes_on = same & waits & old.since_us.valid
    begins = values.valid & waits & ~goes_on
    unseen = ~values.valid
    since = np.where(begins, now_us, old.since_us.values)
    return Standing(
        Column(np.where(unseen, old.values.values, values.values), values.valid | old.values.valid),
        Column(
            np.where(goes_on | begins | unseen, since, 0),
            goes_on | begins | (unseen & old.since_us.valid),
        ),
    )


def _taken(old: Standing | None, rows: Int64s) -> Standing:
    if old is None:
        nothing = Column.absent(len(rows))
        return Standing(nothing, nothing)
    return Standing(old.values.take(rows), old.since_us.take(rows))


def _positive(span: Column) -> Bools:
    positive: Bools = span.valid & (span.values > 0)
    return positive


# ------------------------------------------------------------------ commits
def matching_commits(snapshot: Snapshot, old: CommitMemory) -> Int64s:
    """Return for each commit of the snapshot its position in the memory, -1 where none."""
    return old.keys.find(snapshot.partitions, snapshot.groups, snapshot.commits)


def _advance_commits(snapshot: Snapshot, now_us: int, old: CommitMemory | None) -> CommitMemory:
    commits = snapshot.commits
    places = np.full(len(commits), -1, np.int64) if old is None else matching_commits(snapshot, old)
    standing = _stand(
        Column.known(commits.committed_offset),
        _waits(commits, snapshot),
        now_us,
        _taken(old.standing if old else None, places),
    )
    fresh = CommitMemory(
        partitions=snapshot.partitions,
        group_ids=tuple(group.group_id for group in snapshot.groups),
        group=commits.group,
        row=commits.row,
        standing=standing,
    )
    is_complete = not snapshot.gaps
    return fresh if old is None or is_complete else _with_unseen(fresh, old, places)


def _waits(commits: Commits, snapshot: Snapshot) -> Bools:
    """Mark the commits that records wait behind; unknown lags count, so that a gap resets nothing."""
    lag = commits.read_uncommitted_lag(snapshot.offsets)
    waits: Bools = ~lag.valid | (lag.values > 0)
    return waits


def _with_unseen(fresh: CommitMemory, old: CommitMemory, places: Int64s) -> CommitMemory:
    """Keep the commits that this round did not see: only a complete round may forget."""
    unseen = np.ones(len(old), np.bool_)
    unseen[places[places >= 0]] = False
    back = matching_rows(old.partitions, fresh.partitions)  # old row -> fresh row
    unseen &= back[old.row] >= 0
    if not unseen.any():
        return fresh
    names = tuple(dict.fromkeys((*fresh.group_ids, *old.group_ids)))
    place = {name: position for position, name in enumerate(names)}
    renamed = np.array([place[name] for name in old.group_ids], np.int64)
    group = np.concatenate([fresh.group, renamed[old.group[unseen]]])
    row = np.concatenate([fresh.row, back[old.row[unseen]]])
    order = np.argsort(group * max(len(fresh.partitions), 1) + row, kind="stable")
    kept = np.flatnonzero(unseen).astype(np.int64)
    old_standing = _taken(old.standing, kept)
    return CommitMemory(
        partitions=fresh.partitions,
        group_ids=names,
        group=group[order],
        row=row[order],
        standing=Standing(
            _joined(fresh.standing.values, old_standing.values, order),
            _joined(fresh.standing.since_us, old_standing.since_us, order),
        ),
    )


def _joined(first: Column, second: Column, order: Int64s) -> Column:
    return Column(
        np.concatenate([first.values, second.values])[order],
        np.concatenate([first.valid, second.valid])[order],
    )
