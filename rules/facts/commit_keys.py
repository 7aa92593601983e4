"""Names of commits as columns, so that a later round can find the same ones again.

Positions of groups and rows of partitions differ between two rounds. Groups match by name,
partitions by topic, number and topic id; a topic that was created again has other commits. Where
brokers tell no topic ids the name is enough, unless something is to be proven (`needs_id`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Int64s
from rules.facts.groups import Commits, Group
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitKeys:
    """(group, partition) pairs of one round, ordered by group and row."""

    partitions: Partitions
    group_ids: tuple[str, ...]
    group: Int64s  # position in `group_ids`
    row: Int64s  # row of `partitions`

    def __len__(self) -> int:
        return len(self.row)

    def take(self, positions: Int64s) -> CommitKeys:
        """Return the pairs at `positions`, which ascend."""
        return replace(self, group=self.group[positions], row=self.row[positions])

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

    def find_keys(self, wanted_keys: CommitKeys, *, needs_id: bool = False) -> Int64s:
        """Return for each of other pairs its position among these, -1 where none."""
        if not len(wanted_keys) or not len(self):
            return np.full(len(wanted_keys), -1, np.int64)
        rows = matching_rows(wanted_keys.partitions, self.partitions, needs_id=needs_id)
        place = {name: position for position, name in enumerate(self.group_ids)}
        positions = np.array([place.get(name, -1) for name in wanted_keys.group_ids], np.int64)
        group, row = positions[wanted_keys.group], rows[wanted_keys.row]
        width = max(len(self.partitions), 1)
        known, wanted = self.group * width + self.row, group * width + row
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        hit = (group >= 0) & (row >= 0) & (known[found] == wanted)
        return np.where(hit, found, -1).astype(np.int64)
