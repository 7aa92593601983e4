"""The partitions, topics, groups and commits that drop-in pages show: those of /metrics, share groups apart.

A share group has no committed offset: its start offset trails behind what was acknowledged, so that
an exporter's lag, which scales consumers, would be too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rules.facts.column import Bools, Int64s
from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot
from service.metrics.table import SeriesTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subjects:
    """Positions in the snapshot of what is shown, each ascending."""

    rows: Int64s
    topics: Int64s  # with at least one shown row
    groups: Int64s
    commits: Int64s
    pair_groups: Int64s  # the group of each (group, topic) with a shown commit
    pair_topics: Int64s  # its topic
    pair_of_commit: Int64s  # parallel to `commits`
    table: SeriesTable  # whose selection this is
    is_share: Bools  # per group of the snapshot

    @classmethod
    def of(cls, snapshot: Snapshot, table: SeriesTable) -> Subjects:
        """Take the selection of a table, and join commits by group and topic."""
        is_share, selection = share_groups(snapshot), table.selection
        commits = selection.commits
        if len(commits):
            commits = commits[~is_share[snapshot.commits.group[commits]]]
        topic_of_row = snapshot.partitions.index.topic_of_row
        count = max(1, len(snapshot.partitions.index.topics))
        pairs, pair_of_commit = np.unique(
            snapshot.commits.group[commits] * count + topic_of_row[snapshot.commits.row[commits]],
            return_inverse=True,
        )
        return cls(
            rows=selection.rows,
            topics=np.unique(topic_of_row[selection.rows]),
            groups=selection.groups[~is_share[selection.groups]],
            commits=commits,
            pair_groups=pairs // count,
            pair_topics=pairs % count,
            pair_of_commit=pair_of_commit.astype(np.int64),
            table=table,
            is_share=is_share,
        )

    def fits(self, snapshot: Snapshot, table: SeriesTable) -> bool:
        """Return whether the snapshot shows the same subjects in the same places."""
        return self.table is table and np.array_equal(self.is_share, share_groups(snapshot))


def share_groups(snapshot: Snapshot) -> Bools:
    """Mark the share groups of a snapshot."""
    return np.array([group.group_type is GroupType.SHARE for group in snapshot.groups], np.bool_)
