"""A bounded window of snapshots of one cluster, newest last.

Rows of two snapshots may differ when topics come and go. They are matched by topic, partition and
topic id: a topic that was deleted and created again is another topic, not a rewind. Brokers before
Kafka 2.8 tell no topic ids: by name alone nothing is proven, but a value that is the same as before
has stood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rules.facts.column import Int64s
from rules.facts.identity import TopicId
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """At most `limit` snapshots of the same cluster id, oldest first."""

    limit: int
    snapshots: tuple[Snapshot, ...] = ()

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"a history of {self.limit} snapshots remembers nothing")

    @property
    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, or None before the first round."""
        return self.snapshots[-1] if self.snapshots else None

    def with_snapshot(self, snapshot: Snapshot) -> History:
        """Return the history one round later; another cluster id starts an empty memory."""
        same = tuple(old for old in self.snapshots if old.cluster_id == snapshot.cluster_id)
        return History(self.limit, (*same, snapshot)[-self.limit :])


def matching_rows(newer: Partitions, older: Partitions, *, needs_id: bool = True) -> Int64s:
    """Return for each row of `newer` the row of the same partition in `older`, -1 where none.

    Shape (rows of newer,). Topics match by name and topic id; where either side knows no topic
    id nothing matches, because a re-creation could not be told from a rewind. Who proves nothing
    does without (`needs_id=False`): the name is then enough, and only two ids that differ differ.
    """
    rows = np.full(len(newer), -1, np.int64)
    for position, topic in enumerate(newer.index.topics):
        match = older.index.position_of_topic.get(topic)
        if match is None:
            continue
        if not _is_same(newer.topic_ids[position], older.topic_ids[match], needs_id=needs_id):
            continue
        start, old_start = int(newer.index.starts[position]), int(older.index.starts[match])
        count = min(
            int(newer.index.starts[position + 1]) - start,
            int(older.index.starts[match + 1]) - old_start,
        )
        rows[start : start + count] = np.arange(old_start, old_start + count)
    return rows


def _is_same(new: TopicId | None, old: TopicId | None, *, needs_id: bool) -> bool:
    if new is None or old is None:
        return not needs_id
    return new == old
