"""Whom a transaction holds up: the groups that cannot read past it.

For one partition all commits are scanned. For many partitions of a snapshot, sort the commits once
(`CommitsByRow`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.column import Bools, Int64s
from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot

SHOWN: Final = 20  # groups in one finding


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedGroup:
    """A group that reads a partition and cannot get past a transaction on it.

    Kafka does not report its isolation level: a group counts as read_committed, as in an exactly-once
    pipeline, unless it has committed beyond the last stable offset.
    """

    group_id: str
    blocked_offsets: int  # from the transaction's first offset to the high watermark
    lag_before_transaction: int  # offsets before the transaction: how far it is from being blocked
    is_waiting: bool  # whether it has read all that it can


def blocked_groups(snapshot: Snapshot, row: int, start_offset: int) -> list[BlockedGroup]:
    """Return the groups with a commit at or before `start_offset`, those that wait first.

    Share groups are left out: what is stored of them is not a position. Scans all commits.
    """
    return _among(snapshot, np.flatnonzero(snapshot.commits.row == row), row, start_offset)


class CommitsByRow:
    """The commits of a snapshot, sorted by partition."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Sort once: about a tenth of a second per million commits."""
        self._snapshot = snapshot
        self._places = np.argsort(snapshot.commits.row, kind="stable")
        self._rows = snapshot.commits.row[self._places]

    def blocked_groups(self, row: int, start_offset: int) -> list[BlockedGroup]:
        """Return the same as the function of this name."""
        return _among(self._snapshot, self._of(row), row, start_offset)

    def are_blocked(self, row: int, start_offset: int, is_requested: Bools) -> bool:
        """Whether one of the groups in `is_requested`, by position in the snapshot, is blocked."""
        snapshot = self._snapshot
        if snapshot.offsets.high_watermark[row] is None:
            return False
        places = self._of(row)
        commits = snapshot.commits
        is_before = commits.committed_offset[places] <= start_offset
        groups = commits.group[places[is_before]]
        requested = groups[is_requested[groups]].tolist()
        return any(snapshot.groups[group].group_type is not GroupType.SHARE for group in requested)

    def _of(self, row: int) -> Int64s:
        first, last = np.searchsorted(self._rows, (row, row + 1))
        places: Int64s = self._places[first:last]
        return places


def _among(snapshot: Snapshot, places: Int64s, row: int, start_offset: int) -> list[BlockedGroup]:
    """Return the blocked groups among some commits of one partition."""
    end = snapshot.offsets.high_watermark[row]
    if end is None:
        return []
    reached = places[snapshot.commits.committed_offset[places] <= start_offset]
    groups = [_blocked(snapshot, place, start_offset, end) for place in reached.tolist()]
    return sorted(
        (group for group in groups if group is not None),
        key=lambda group: (not group.is_waiting, group.group_id),
    )


def _blocked(snapshot: Snapshot, place: int, start: int, end: int) -> BlockedGroup | None:
    commits = snapshot.commits
    group = snapshot.groups[int(commits.group[place])]
    if group.group_type is GroupType.SHARE:
        return None
    before = start - int(commits.committed_offset[place])
    return BlockedGroup(
        group_id=group.group_id,
        blocked_offsets=end - start,
        lag_before_transaction=before,
        is_waiting=before == 0 or commits.nothing_to_read[place] == 1,
    )


def shown(groups: list[BlockedGroup]) -> dict[str, EvidenceValue]:
    """Return the groups as evidence, the first of them by name."""
    rows: list[dict[str, Scalar]] = [
        {
            "group": group.group_id,
            "blocked_offsets": group.blocked_offsets,
            "lag_before_transaction": group.lag_before_transaction,
            "is_waiting": group.is_waiting,
        }
        for group in groups[:SHOWN]
    ]
    return {"blocked_groups": rows, "blocked_group_count": len(groups)}
