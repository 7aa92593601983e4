"""How each group commits: in transactions, outside of them, or both.

A commit that belongs to a transaction is in a transactional batch of `__consumer_offsets`. Both kinds prove
that an application whose offsets belong into its transactions commits some of them outside. But a person may
reset a group, which is one plain commit while it has no members, and an application may go over to
transactions. So what counts is a plain commit between two transactional ones, made while the group had members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias

from rules.facts.batch_samples import CommitSample
from rules.facts.group_memory import have_members
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND

REMEMBERED_FOR: Final = timedelta(hours=24)  # after a transactional commit was last sampled
MOST: Final = 1000  # groups, those seen last


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCommit:
    """A commit outside a transaction; `record_us` by the coordinator's clock, `seen_us` by ours."""

    name: TopicPartition
    offset: int  # in `__consumer_offsets`
    record_us: int | None
    seen_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommits:
    """The commits of a group that has made one in a transaction; times in microseconds since 1970-01-01 UTC."""

    producer_id: int  # of the last transactional one
    transactional_offset: int  # of that commit, in `__consumer_offsets`
    transactional_seen_us: int
    pending: PlainCommit | None = None  # after it
    between: int = 0  # times that plain commits lay between two transactional ones
    first_between: PlainCommit | None = None
    last_between: PlainCommit | None = None


CommitKinds: TypeAlias = Mapping[str, GroupCommits]  # by group


def advance_commit_kinds(snapshot: Snapshot, now_us: int, old: CommitKinds) -> CommitKinds:
    """Return the commits one round later."""
    oldest = now_us - REMEMBERED_FOR // MICROSECOND
    after = {name: each for name, each in old.items() if each.transactional_seen_us >= oldest}
    members = have_members(snapshot.groups)
    active = {
        group.group_id
        for group, is_known, has in zip(snapshot.groups, members.valid, members.values, strict=True)
        if is_known and has
    }
    for sample in snapshot.batch_samples.commits:
        before = after.pop(sample.group_id, None)
        commits = _next(before, sample, now_us, is_active=sample.group_id in active)
        if commits is not None:
            after[sample.group_id] = commits
    return dict(list(after.items())[-MOST:])


def _next(
    before: GroupCommits | None, sample: CommitSample, now_us: int, *, is_active: bool
) -> GroupCommits | None:
    if sample.producer_id is None:
        if before is None or not is_active or sample.offset < before.transactional_offset:
            return before
        at = sample.record_at
        record_us = None if at is None else microseconds(at)
        plain = PlainCommit(
            name=sample.name, offset=sample.offset, record_us=record_us, seen_us=now_us
        )
        return replace(before, pending=plain)
    fresh = GroupCommits(
        producer_id=sample.producer_id,
        transactional_offset=sample.offset,
        transactional_seen_us=now_us,
    )
    return fresh if before is None else _close(before, fresh)


def _close(before: GroupCommits, fresh: GroupCommits) -> GroupCommits:
    """Return the later transactional commit, with what lay between it and the one before."""
    pending = before.pending
    is_between = pending is not None and fresh.transactional_offset > pending.offset
    return replace(
        fresh,
        between=before.between + is_between,
        first_between=before.first_between or (pending if is_between else None),
        last_between=pending if is_between else before.last_between,
    )


def merge_commit_kinds(stored: CommitKinds, seen: CommitKinds) -> CommitKinds:
    """Merge what an earlier process stored; nothing is concluded of what lay between the two."""
    merged = dict(stored)
    for name, each in seen.items():
        before = stored.get(name)
        merged[name] = each if before is None else _add(before, each)
    return merged


def _add(before: GroupCommits, after: GroupCommits) -> GroupCommits:
    return replace(
        after,
        between=before.between + after.between,
        first_between=before.first_between or after.first_between,
        last_between=after.last_between or before.last_between,
    )


def commit_kinds_with_times(kinds: CommitKinds, change: Callable[[int], int]) -> CommitKinds:
    """Return the commits with our own times changed."""

    def move(plain: PlainCommit | None) -> PlainCommit | None:
        return None if plain is None else replace(plain, seen_us=change(plain.seen_us))

    return {
        name: replace(
            each,
            transactional_seen_us=change(each.transactional_seen_us),
            pending=move(each.pending),
            first_between=move(each.first_between),
            last_between=move(each.last_between),
        )
        for name, each in kinds.items()
    }
