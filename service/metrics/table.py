"""The series table: the series that are shown, and their label text, kept from round to round.

Names and escaping take more time than numbers, and they change only when a topic, a partition, a group
or a group's set of partitions comes or goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rules.facts.column import Int64s
from rules.facts.partitions import PartitionIndex
from rules.facts.snapshot import Snapshot
from service.metrics.lines import closed, label
from service.metrics.selection import Selection, SeriesLimits, select


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesTable:
    """Label text of all series shown; the pieces are parallel to `selection`."""

    selection: Selection
    row_labels: Sequence[bytes]  # closed: a value may follow
    commit_labels: Sequence[bytes]  # closed
    group_labels: Sequence[bytes]  # open: the type and state of a group follow
    limits: SeriesLimits  # by which the series were chosen
    key: TableKey

    @classmethod
    def of(cls, snapshot: Snapshot, limits: SeriesLimits) -> SeriesTable:
        """Choose the series and write their labels."""
        chosen = select(snapshot, limits)
        rows = row_labels(snapshot.partitions.index)
        groups = [label("group", group.group_id) for group in snapshot.groups]
        commits = snapshot.commits
        pairs = zip(
            commits.group[chosen.commits].tolist(),
            commits.row[chosen.commits].tolist(),
            strict=True,
        )
        return cls(
            selection=chosen,
            row_labels=closed(rows[row] for row in chosen.rows.tolist()),
            commit_labels=closed(groups[group] + b"," + rows[row] for group, row in pairs),
            group_labels=[groups[position] for position in chosen.groups.tolist()],
            limits=limits,
            key=TableKey.of(snapshot),
        )

    def fits(self, snapshot: Snapshot) -> bool:
        """Return whether the snapshot has the same subjects in the same places."""
        return self.key.is_same(TableKey.of(snapshot))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableKey:
    """Everything on which a table depends, besides its limits."""

    topics: tuple[str, ...]
    starts: Int64s
    groups: tuple[str, ...]
    commit_group: Int64s
    commit_row: Int64s

    @classmethod
    def of(cls, snapshot: Snapshot) -> TableKey:
        """Take the names and places of a snapshot."""
        return cls(
            topics=snapshot.partitions.index.topics,
            starts=snapshot.partitions.index.starts,
            groups=tuple(group.group_id for group in snapshot.groups),
            commit_group=snapshot.commits.group,
            commit_row=snapshot.commits.row,
        )

    def is_same(self, other: TableKey) -> bool:
        """Return whether two snapshots have the same subjects in the same places."""
        return (
            self.topics == other.topics
            and self.groups == other.groups
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.commit_group, other.commit_group)
            and np.array_equal(self.commit_row, other.commit_row)
        )


def row_labels(
    index: PartitionIndex, topic: str = "topic", partition: str = "partition"
) -> list[bytes]:
    """Return the open labels of every row, `topic` and `partition` being their names."""
    counts = np.diff(index.starts).tolist()
    number = f',{partition}="%d"'.encode()
    return [
        name + number % row
        for name, count in zip((label(topic, t) for t in index.topics), counts, strict=True)
        for row in range(count)
    ]
