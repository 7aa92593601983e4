"""The topics that carry transactions: seen once, and remembered.

A topic counts as soon as a span of it is open, a leader holds a transaction open on it, or a coordinator
lists it. Between transactions none of this can be seen, so that it is carried from round to round. A topic
that was created again under the same name begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rules.facts.identity import TopicId
from rules.facts.snapshot import Snapshot

TransactionalTopics = Mapping[str, TopicId | None]  # name -> its id when it was seen


def advance_transactional_topics(
    snapshot: Snapshot, before: TransactionalTopics
) -> TransactionalTopics:
    """Return the topics one round later; the same object where nothing changed."""
    ids = snapshot.partitions.id_of
    seen = {name: ids(name) for name in _seen(snapshot)}
    gone = {
        name: topic_id
        for name, topic_id in before.items()
        if (snapshot.placement_complete and name not in snapshot.partitions.index.position_of_topic)
        or ids(name) not in (None, topic_id)
    }
    if not gone and seen.items() <= before.items():
        return before
    return {name: value for name, value in before.items() if name not in gone} | seen


def _seen(snapshot: Snapshot) -> Iterator[str]:
    """Yield the topics on which this round shows a transaction."""
    index, span = snapshot.partitions.index, snapshot.offsets.open_span
    rows = np.flatnonzero(span.valid & (span.values > 0))
    rows = np.concatenate([rows, [entry.row for entry in snapshot.producers.open]]).astype(np.int64)
    positions: list[int] = np.unique(index.topic_of_row[rows]).tolist()
    yield from (index.topics[position] for position in positions)
    for transaction in snapshot.transactions.known.values():
        for place in transaction.partitions or ():
            if place.topic in index.position_of_topic:
                yield place.topic
