"""What transactions are used for: the topics that carry them, and the timeouts of their ids.

A topic counts as soon as a span of it stays open, a leader holds a transaction open on it, a batch of one is
sampled, or a coordinator or the transaction log lists it; a timeout is seen while a transaction is open, and where
that log is read. A span of one round alone proves nothing: the last stable offset is read before the high
watermark, which grows in between.
Between transactions none of this can be seen, so that it is carried from round to round. A topic that was
created again under the same name begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final

import numpy as np

from rules.facts.column import Int64s
from rules.facts.identity import TopicId
from rules.facts.last_observation import LastObservations
from rules.facts.matching import matching_rows
from rules.facts.snapshot import Snapshot

MOST_IDS: Final = 10_000  # whose timeouts are remembered; those that were seen last


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalUse:
    """What was seen since the process began."""

    topics: Mapping[str, TopicId | None] = field(default_factory=dict)  # name -> its id when seen
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)  # by id, the last one seen last


def advance_transactional_use(
    snapshot: Snapshot, before: TransactionalUse, observations: LastObservations | None
) -> TransactionalUse:
    """Return it one round later, the same object where nothing changed; `observations`: of the round before."""
    seen = _seen_topics(snapshot, observations)
    topics, timeouts = _topics(snapshot, before.topics, seen), _timeouts(snapshot, before.timeouts)
    if topics is before.topics and timeouts is before.timeouts:
        return before
    return TransactionalUse(topics=topics, timeouts=timeouts)


def _topics(
    snapshot: Snapshot, before: Mapping[str, TopicId | None], names: Iterable[str]
) -> Mapping[str, TopicId | None]:
    ids, listed = snapshot.partitions.id_of, snapshot.partitions.index.position_of_topic
    seen = {name: ids(name) for name in names}
    gone = {
        name
        for name, topic_id in before.items()
        if (snapshot.placement_complete and name not in listed) or ids(name) not in (None, topic_id)
    }
    if not gone and seen.items() <= before.items():
        return before
    return {name: value for name, value in before.items() if name not in gone} | seen


def _seen_topics(snapshot: Snapshot, observations: LastObservations | None) -> Iterator[str]:
    """Yield the topics on which this round shows a transaction."""
    index, sampled = snapshot.partitions.index, snapshot.batch_samples.partitions
    listed = [entry.row for entry in snapshot.producers.open]
    listed += [each.row for each in sampled if any(w.is_transactional for w in each.writers)]
    rows = np.concatenate([_held_rows(snapshot, observations), listed]).astype(np.int64)
    positions: list[int] = np.unique(index.topic_of_row[rows]).tolist()
    yield from (index.topics[position] for position in positions)
    lists = [entry.partitions or () for entry in snapshot.transactions.known.values()]
    lists += [ended.partitions for ended in snapshot.transaction_log.ended]
    names = {place.topic for places in lists for place in places}
    yield from names & index.position_of_topic.keys()


def _held_rows(snapshot: Snapshot, observations: LastObservations | None) -> Int64s:
    """Return the rows whose last stable offset is still below the high watermark of the round before."""
    if observations is None:
        return np.zeros(0, np.int64)
    rows = matching_rows(snapshot.partitions, observations.partitions, needs_id=False)
    stable, epoch = snapshot.offsets.last_stable_offset, snapshot.offsets.leader_epoch
    old_stable = observations.last_stable_offset.take(rows)
    old_end, old_epoch = (
        observations.high_watermark.take(rows),
        observations.leader_epoch.take(rows),
    )
    held = stable.valid & old_stable.valid & old_end.valid & epoch.valid & old_epoch.valid
    held &= (epoch.values == old_epoch.values) & (stable.values >= old_stable.values)
    return np.flatnonzero(held & (stable.values < old_end.values)).astype(np.int64)


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
