"""Partitions whose last stable offset is held although no transaction is open, and since when.

Offsets are read before producers, so that a transaction that ends in between resembles a marker that
is not replicated: only a later observation of the same held offset proves that it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerWait:
    """A last stable offset that is held although no transaction is open from there on."""

    topic_id: TopicId | None  # None: the brokers have no topic ids
    held_from: int
    # The first observation of it, microseconds since 1970-01-01 UTC, by our own clock
    since_us: int


def rows_held_by_nobody(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Return each row whose last stable offset is held by no producer known to its leader, with the offset.

    Such an offset waits for an end marker to be replicated. Offsets are read before producers, so that a
    transaction that ends in between gives the same result.
    """
    offsets = snapshot.offsets
    first_open: dict[int, int] = {}
    for producer in snapshot.producers.open:
        first_open.setdefault(producer.row, producer.start_offset)
    span, stable = offsets.open_span, offsets.last_stable_offset
    is_held = snapshot.producers.observed & span.valid & (span.values > 0)
    return [
        (row, held_from)
        for row in np.flatnonzero(is_held).tolist()
        if (held_from := stable[row]) is not None and first_open.get(row, held_from + 1) > held_from
    ]


def advance_markers(
    snapshot: Snapshot, now_us: int, old: Mapping[TopicPartition, MarkerWait]
) -> dict[TopicPartition, MarkerWait]:
    """Return the waits for a marker one round later; those that a round cannot see are kept."""
    waits: dict[TopicPartition, MarkerWait] = {}
    for row, held_from in rows_held_by_nobody(snapshot):
        name = snapshot.partitions.index.topic_partition(row)
        topic_id = snapshot.partitions.topic_id(row)
        before = old.get(name)
        goes_on = before is not None and (before.topic_id, before.held_from) == (
            topic_id,
            held_from,
        )
        since = before.since_us if before is not None and goes_on else now_us
        waits[name] = MarkerWait(topic_id=topic_id, held_from=held_from, since_us=since)
    unseen = {name: wait for name, wait in old.items() if name not in waits}
    return waits | {name: wait for name, wait in unseen.items() if _may_wait(snapshot, name, wait)}


def _may_wait(snapshot: Snapshot, name: TopicPartition, before: MarkerWait) -> bool:
    row = snapshot.partitions.index.row(name.topic, name.partition)
    if row is None or snapshot.producers.observed[row]:
        return False
    stable, span = snapshot.offsets.last_stable_offset[row], snapshot.offsets.open_span[row]
    is_same = snapshot.partitions.topic_id(row) == before.topic_id
    return is_same and span != 0 and stable in (None, before.held_from)
