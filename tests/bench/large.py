"""A large cluster without brokers: 10,000 partitions x 1,001 groups, 31,590 commits.

One group has committed nearly every partition, the others 20 or 30 each. A snapshot is made of
whole NumPy columns, so that making one costs less than a megabyte beyond what a round of a real
cluster holds too: what a bench measures is the service.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

import numpy as np

from rules.facts.column import Column, Int64s
from rules.facts.groups import Commits
from rules.facts.offsets import Offsets
from rules.facts.snapshot import Snapshot
from tests.factories import at, group, partitions, snapshot

ROWS: Final = 10_000
GROUPS: Final = 1_001
COMMITS: Final = 31_590
WIDE_COMMITS: Final = 9_990  # of one group; each other one has 20, and some have 10 more
INTERVAL_SECONDS: Final = 15

TITLE: Final = f"{ROWS:,} partitions x {GROUPS:,} groups, {COMMITS:,} commits"
PLACED: Final = partitions({f"topic-{place:03}": 50 for place in range(200)})  # lasts, as in a pool
_DRAW: Final = np.random.default_rng(7)
_FIRST_ENDS: Final = _DRAW.integers(10**6, 10**10, ROWS)
_PER_ROUND: Final = _DRAW.integers(100, 5_000, ROWS)
_BEHIND: Final = _DRAW.integers(0, 10_000, COMMITS)


def _pairs() -> Int64s:
    """Return (group, row) of every commit, ordered."""
    draw, small = random.Random(7), GROUPS - 1
    with_more = (COMMITS - WIDE_COMMITS - 20 * small) // 10
    drawn = [
        (position, row)
        for position in range(small)
        for row in sorted(draw.sample(range(ROWS), 30 if position < with_more else 20))
    ]
    return np.array([*drawn, *((small, row) for row in range(WIDE_COMMITS))], np.int64)


_PAIRS: Final = _pairs()


def ends(number: int) -> Int64s:
    """Return where every partition ends in a round."""
    found: Int64s = _FIRST_ENDS + number * _PER_ROUND
    return found


def moving(number: int, *, committed_at: int | None = None) -> Snapshot:
    """Return a round of a cluster at work; groups may have stopped in an earlier one."""
    row = _PAIRS[:, 1].copy()  # every round brings columns of its own
    seen_by_groups = ends(number if committed_at is None else committed_at)
    return snapshot(
        taken_at=at(INTERVAL_SECONDS * number),
        partitions=PLACED,
        offsets=_offsets(level=ends(number), log_end=ends(number)),
        groups=tuple(group(f"group-{place:04}") for place in range(GROUPS)),
        commits=Commits(
            group=_PAIRS[:, 0].copy(),
            row=row,
            committed_offset=seen_by_groups[row] - _BEHIND,
            committed_leader_epoch=Column.absent(COMMITS),
            nothing_to_read=Column.absent(COMMITS),
            scan_failed=np.zeros(COMMITS, np.bool_),
            reported_lag=Column.absent(COMMITS),
            has_reported_lag=np.zeros(COMMITS, np.bool_),
        ),
    )


def abandoned(number: int, *, each: int = 30) -> Snapshot:
    """Return a round in which nobody is left of all groups, each some offsets before so many ends."""
    seen, count = moving(0), GROUPS * each
    row = (np.arange(count) * 7) % ROWS
    order = np.lexsort((row, np.arange(count) // each))
    return replace(
        seen,
        taken_at=at(INTERVAL_SECONDS * number),
        groups=tuple(replace(one, state="Empty", member_count=0) for one in seen.groups),
        commits=Commits(
            group=(np.arange(count) // each)[order],
            row=row[order],
            committed_offset=ends(0)[row[order]] - 5,
            committed_leader_epoch=Column.absent(count),
            nothing_to_read=Column.known(np.zeros(count, np.int64)),
            scan_failed=np.zeros(count, np.bool_),
            reported_lag=Column.absent(count),
            has_reported_lag=np.zeros(count, np.bool_),
        ),
    )


def stuck(number: int, *, since: int, rows: int) -> Snapshot:
    """Return a round in which so many high watermarks stand where they were in an earlier one."""
    seen = moving(number)
    level = np.where(np.arange(ROWS) < rows, ends(since), ends(number))
    commits = seen.commits
    read = replace(
        commits, committed_offset=np.minimum(commits.committed_offset, level[commits.row])
    )
    return replace(seen, offsets=_offsets(level=level, log_end=ends(number)), commits=read)


def _offsets(*, level: Int64s, log_end: Int64s) -> Offsets:
    return Offsets(
        log_start_offset=Column.known(np.zeros(ROWS, np.int64)),
        last_stable_offset=Column.known(level.copy()),
        high_watermark=Column.known(level),
        log_end_offset=Column.known(log_end),
        leader_epoch=PLACED.leader_epoch,
        replica_log_end_offsets=Column.absent(3 * ROWS),
    )
