"""Which partitions are the same in two rounds.

Rows of two snapshots may differ when topics are created or deleted. They are matched by topic, partition
and topic id: a recreated topic is another topic, not a rewind.
"""

from __future__ import annotations

import numpy as np

from rules.facts.column import Int64s
from rules.facts.identity import TopicId
from rules.facts.partitions import Partitions


def matching_rows(newer: Partitions, older: Partitions, *, needs_id: bool = True) -> Int64s:
    """Return for each row of `newer` the row of the same partition in `older`, -1 where none.

    Shape (rows of newer,). Topics match by name and topic id; where either side has no topic id nothing
    matches, because a re-creation resembles a rewind. With `needs_id=False`, for uses that prove
    nothing, the name is enough unless both sides have ids and these differ.
    """
    if newer is older and not (needs_id and None in newer.topic_ids):
        return np.arange(len(newer), dtype=np.int64)
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
