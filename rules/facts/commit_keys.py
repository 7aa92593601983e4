"""Keys of commits as columns, so that a later round can match the same commits.

Positions of groups and rows of partitions differ between two rounds. Groups match by name,
partitions by topic, number and topic id; a recreated topic has other commits. Where brokers have no
topic ids the name is enough, unless something is to be proven (`needs_id`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rules.facts.column import Int64s, Table, find_codes
from rules.facts.groups import Commits, Group
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitKeys(Table):
    """(group, partition) pairs of one round, ordered by group and row."""

    partitions: Partitions
    group_ids: tuple[str, ...]
    group: Int64s  # position in `group_ids`
    row: Int64s  # row of `partitions`

    def __len__(self) -> int:
        return len(self.row)

    def find(
        self,
        partitions: Partitions,
        groups: Sequence[Group],
        commits: Commits,
        *,
        needs_id: bool = False,
    ) -> Int64s:
        """Return for each commit of a round its position among these pairs, -1 where none."""
        return self.find_keys(
            CommitKeys(
                partitions=partitions,
                group_ids=tuple(group.group_id for group in groups),
                group=commits.group,
                row=commits.row,
            ),
            needs_id=needs_id,
        )

    def find_keys(self, keys: CommitKeys, *, needs_id: bool = False) -> Int64s:
        """Return for each of other pairs its position among these, -1 where none."""
        if not len(keys) or not len(self):
            return np.full(len(keys), -1, np.int64)
        rows = matching_rows(keys.partitions, self.partitions, needs_id=needs_id)
        place = {name: position for position, name in enumerate(self.group_ids)}
        positions = np.array([place.get(name, -1) for name in keys.group_ids], np.int64)
        group, row = positions[keys.group], rows[keys.row]
        width = max(len(self.partitions), 1)
        is_known = (group >= 0) & (row >= 0)
        return find_codes(self.group * width + self.row, group * width + row, is_known)
