"""What transactions are used for: the topics that carry them, and the timeouts of their ids.

A topic counts as soon as a span of it is open, a leader holds a transaction open on it, or a coordinator or
the transaction log lists it; a timeout is seen while a transaction is open, and where that log is read.
Between transactions none of this can be seen, so that it is carried from round to round. A topic that was
created again under the same name begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final

import numpy as np

from rules.facts.identity import TopicId
from rules.facts.snapshot import Snapshot

MOST_IDS: Final = 10_000  # whose timeouts are remembered; those that were seen last


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalUse:
    """What was seen since the process began."""

    topics: Mapping[str, TopicId | None] = field(default_factory=dict)  # name -> its id when seen
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)  # by id, the last one seen last


def advance_transactional_use(snapshot: Snapshot, before: TransactionalUse) -> TransactionalUse:
    """Return it one round later; the same object where nothing changed."""
    topics, timeouts = _topics(snapshot, before.topics), _timeouts(snapshot, before.timeouts)
    if topics is before.topics and timeouts is before.timeouts:
        return before
    return TransactionalUse(topics=topics, timeouts=timeouts)


def _topics(
    snapshot: Snapshot, before: Mapping[str, TopicId | None]
) -> Mapping[str, TopicId | None]:
    ids, listed = snapshot.partitions.id_of, snapshot.partitions.index.position_of_topic
    seen = {name: ids(name) for name in _seen_topics(snapshot)}
    gone = {
        name
        for name, topic_id in before.items()
        if (snapshot.placement_complete and name not in listed) or ids(name) not in (None, topic_id)
    }
    if not gone and seen.items() <= before.items():
        return before
    return {name: value for name, value in before.items() if name not in gone} | seen


def _seen_topics(snapshot: Snapshot) -> Iterator[str]:
    """Yield the topics on which this round shows a transaction."""
    index, span = snapshot.partitions.index, snapshot.offsets.open_span
    rows = np.flatnonzero(span.valid & (span.values > 0))
    rows = np.concatenate([rows, [entry.row for entry in snapshot.producers.open]]).astype(np.int64)
    positions: list[int] = np.unique(index.topic_of_row[rows]).tolist()
    yield from (index.topics[position] for position in positions)
    lists = [entry.partitions or () for entry in snapshot.transactions.known.values()]
    lists += [ended.partitions for ended in snapshot.transaction_log.ended]
    names = {place.topic for places in lists for place in places}
    yield from names & index.position_of_topic.keys()


def _timeouts(snapshot: Snapshot, before: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
    seen = dict(_seen_timeouts(snapshot))
    if seen.items() <= before.items():
        return before
    merged = {name: timeout for name, timeout in before.items() if name not in seen} | seen
    return dict(islice(merged.items(), max(len(merged) - MOST_IDS, 0), None))


def _seen_timeouts(snapshot: Snapshot) -> Iterator[tuple[str, timedelta]]:
    for ended in snapshot.transaction_log.ended:
        yield ended.transactional_id, ended.timeout
    for name, transaction in snapshot.transactions.known.items():
        if transaction.timeout is not None:
            yield name, transaction.timeout
