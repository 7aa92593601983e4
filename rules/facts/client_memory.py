"""What is remembered of clients, whose settings cannot be queried: how they write, read and commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rules.facts.commit_kinds import (
    CommitKinds,
    advance_commit_kinds,
    commit_kinds_with_times,
    merge_commit_kinds,
)
from rules.facts.commit_memory import CommitMemory
from rules.facts.commits_above_lso import (
    AboveLso,
    above_lso_with_times,
    advance_above_lso,
    merge_above_lso,
)
from rules.facts.last_observation import LastObservations
from rules.facts.snapshot import Snapshot
from rules.facts.writer_memory import (
    WriterMemory,
    advance_writers,
    latest_writer_time,
    merge_writers,
    writers_with_times,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMemory:
    """The evidence of one cluster."""

    writers: WriterMemory = field(default_factory=WriterMemory)
    above_lso: AboveLso = field(default_factory=dict)
    commit_kinds: CommitKinds = field(default_factory=dict)


def advance_clients(
    snapshot: Snapshot,
    now_us: int,
    old: ClientMemory,
    commits: CommitMemory | None,
    observations: LastObservations | None,
) -> ClientMemory:
    """Return the memory one round later; `commits` and `observations` are those of the round before."""
    return ClientMemory(
        writers=advance_writers(snapshot, now_us, old.writers),
        above_lso=advance_above_lso(snapshot, now_us, old.above_lso, commits, observations),
        commit_kinds=advance_commit_kinds(snapshot, now_us, old.commit_kinds),
    )


def merge_clients(stored: ClientMemory, seen: ClientMemory) -> ClientMemory:
    """Merge the stored memory of an earlier process."""
    return ClientMemory(
        writers=merge_writers(stored.writers, seen.writers),
        above_lso=merge_above_lso(stored.above_lso, seen.above_lso),
        commit_kinds=merge_commit_kinds(stored.commit_kinds, seen.commit_kinds),
    )


def clients_with_times(memory: ClientMemory, change: Callable[[int], int]) -> ClientMemory:
    """Return the memory with its times changed."""
    return ClientMemory(
        writers=writers_with_times(memory.writers, change),
        above_lso=above_lso_with_times(memory.above_lso, change),
        commit_kinds=commit_kinds_with_times(memory.commit_kinds, change),
    )


def latest_client_time(memory: ClientMemory) -> int:
    """Return the latest remembered time of our own, 0 where there is none."""
    times = [latest_writer_time(memory.writers)]
    times += [each.last_seen_us for each in memory.above_lso.values()]
    times += [each.transactional_seen_us for each in memory.commit_kinds.values()]
    return max(times)
