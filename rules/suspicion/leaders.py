"""What is known of the leaders that a partition had before a rejection.

While a leader epoch lasts its leader loses nothing that it appended, and a clean change keeps all that was
acknowledged. So a rejection on a partition without any other change proves that nothing acknowledged is
missing there, whatever was rejected and of whom: no line, offset or producer is needed.
Source: KIP-101; docs/sequence.md, continuity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Int64s
from rules.facts.episodes import ChangeKind, LeaderChange, SequenceMemory
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.matching import matching_rows
from rules.facts.suspicions import PartitionState, SuspectedPartition
from rules.facts.times import MICROSECOND
from rules.view import View

# A leader forgets a producer that does not write, after a day by default (producer.id.expiration.ms), and
# before Kafka 3.5 after seven (transactional.id.expiration.ms): what it compares a sequence with was then
# appended in its own epoch.
LONG_LED: Final = timedelta(days=8)
MOVED_BEFORE: Final = timedelta(seconds=60)  # a count may be so much older than it seems

Changes = Mapping[TopicPartition, tuple[LeaderChange, ...]]


def rows_led_by(view: View, brokers: tuple[int, ...], since_us: int) -> Int64s:
    """Return the rows that one of the brokers may have led since a time, without internal topics.

    Those that it leads, or led in the round before, and all whose leader changed since: it may have led
    one of them for a short time.
    """
    partitions = view.snapshot.partitions
    led = _are_led(partitions.leader.values, brokers) & partitions.leader.valid
    if view.before is not None:
        rows = matching_rows(partitions, view.before.partitions)
        earlier = view.before.partitions.leader.take(rows)
        led |= _are_led(earlier.values, brokers) & earlier.valid
    watch = view.memory.sequences.leaderships.over(partitions)
    seen_us = watch.since_us.values
    has_moved = watch.epoch.values > watch.watched_from.values
    has_moved &= seen_us + MOVED_BEFORE // MICROSECOND >= since_us
    is_new = (watch.epoch.values > 0) & (seen_us > since_us)  # it may have moved before
    led |= watch.since_us.valid & (has_moved | is_new)
    is_internal = np.array(partitions.internal, np.bool_)[partitions.index.topic_of_row]
    return np.flatnonzero(led & ~is_internal).astype(np.int64)


def rows_of_topic(view: View, topic: str) -> Int64s:
    """Return the rows of a topic."""
    index = view.snapshot.partitions.index
    position = index.position_of_topic.get(topic)
    if position is None:
        return np.empty(0, np.int64)
    start, end = index.starts[position : position + 2].tolist()
    return np.arange(start, end, dtype=np.int64)


def list_unproven(view: View, rows: Int64s) -> Int64s:
    """Return the rows in which an acknowledged record may be missing."""
    return rows[~_are_proven(view, rows)]


def state_of(view: View, row: int) -> SuspectedPartition:
    """Return what is known of one partition's leaders."""
    snapshot, sequences = view.snapshot, view.memory.sequences
    name = snapshot.partitions.index.topic_partition(row)
    epoch = snapshot.offsets.leader_epoch[row]
    partition = SuspectedPartition(
        name=name,
        topic_id=snapshot.partitions.topic_id(row),
        state=PartitionState.NOT_OBSERVED,
        leader_epoch=epoch,
        is_written=_is_written(view, row),
    )
    if epoch is None:
        return partition
    change = _worst_change(sequences.changes.get(name, ()))
    if change is not None:
        is_lost = change.kind is ChangeKind.LOST
        return replace(
            partition,
            state=PartitionState.LOST if is_lost else PartitionState.CHANGED,
            changed_us=change.last_observation_us or change.seen_us,
            change_epoch=change.leader_epoch,
        )
    return replace(partition, state=_state_without_change(view, sequences, row, epoch))


def _state_without_change(
    view: View, sequences: SequenceMemory, row: int, epoch: int
) -> PartitionState:
    watch = sequences.leaderships
    name = view.snapshot.partitions.index.topic_partition(row)
    place = watch.row(name)
    if epoch == 0:
        return PartitionState.FIRST_EPOCH
    if place is None:
        return PartitionState.CLEAN_NOT_PROVEN
    if watch.clean_from[place] == 0:
        return PartitionState.CLEAN_CHANGES
    since = watch.since_us[place]
    is_long = since is not None and since <= microseconds(view.now) - LONG_LED // MICROSECOND
    return PartitionState.LONG_LED if is_long else PartitionState.CLEAN_NOT_PROVEN


def _are_led(leaders: Int64s, brokers: tuple[int, ...]) -> Bools:
    mask: Bools = np.isin(leaders, np.array(brokers, np.int64))
    return mask


def _are_proven(view: View, rows: Int64s) -> Bools:
    """Mark the rows of which leaderships alone prove that nothing acknowledged is missing."""
    sequences, epochs = view.memory.sequences, view.snapshot.offsets.leader_epoch
    watch = sequences.leaderships.over(view.memory.partitions).take(rows)
    now_us = microseconds(view.now)
    is_first = epochs.values[rows] == 0
    is_clean = watch.clean_from.valid & (watch.clean_from.values == 0)
    is_long = watch.since_us.valid & (watch.since_us.values <= now_us - LONG_LED // MICROSECOND)
    changed = {
        row
        for name in sequences.changes
        if (row := view.snapshot.partitions.index.row(name.topic, name.partition)) is not None
    }
    is_changed = np.isin(rows, np.array(sorted(changed), np.int64))
    proven: Bools = epochs.valid[rows] & (is_first | is_clean | is_long) & ~is_changed
    return proven


def _worst_change(changes: tuple[LeaderChange, ...]) -> LeaderChange | None:
    kinds = tuple(ChangeKind)
    return min(
        changes, key=lambda change: (kinds.index(change.kind), -change.seen_us), default=None
    )


def _is_written(view: View, row: int) -> bool:
    """Whether a partition's log grew since the round before."""
    name = view.snapshot.partitions.index.topic_partition(row)
    before = None if view.before is None else view.before.observations.of_partition(name)
    end = view.snapshot.offsets.log_end_offset[row] or view.snapshot.offsets.high_watermark[row]
    if before is None or end is None:
        return True
    return end > (before.log_end_offset or before.high_watermark)
