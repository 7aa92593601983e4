"""Which partitions are reassigned: one change when it begins and one when it ends, whatever lies between.

While a reassignment is in progress, the replicas of a partition are those before and those that are added. The
controller ends it, in one step, once all that are added are in sync, and removes the others (KIP-455). So
replicas that only grew are in progress until the added ones are in the ISR, and no request of its own is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from rules.changes.grouping import Change
from rules.facts.change_events import ChangedSubject, ChangeEventKind
from rules.facts.column import Int64s, Ragged
from rules.facts.identity import TopicPartition
from rules.facts.partitions import Partitions

Replicas = tuple[int, ...]
Origins = Mapping[
    TopicPartition, Replicas
]  # the replicas before a reassignment that is in progress
BEGAN: Final = ChangeEventKind.REASSIGNMENT_BEGAN
CANCELLED: Final = ChangeEventKind.REASSIGNMENT_CANCELLED
ENDED: Final = ChangeEventKind.REPLICAS_REASSIGNED


def advance_reassignments(
    new: Partitions, old: Partitions, rows: Int64s, origins: Origins, since_us: int
) -> tuple[dict[TopicPartition, Replicas], list[Change]]:
    """Return the reassignments that are in progress now, and what began or ended.

    `rows` are those of `old` by rows of `new`, for topics that are the same.
    """
    left = {name: origin for name, origin in origins.items() if _is_there(new, rows, name)}
    changes: list[Change] = []
    for row in changed_rows(new.replicas, old.replicas, rows):
        name = new.index.topic_partition(row)
        before, after = old.replicas[int(rows[row])] or (), new.replicas[row] or ()
        origin = left.get(name)
        if set(after) > set(before):
            left.setdefault(name, before)
            if origin is None and not _is_in_sync(new, row, before):
                changes.append(_change(BEGAN, name, (before, after), since_us))
            continue
        left.pop(name, None)
        if after == origin:
            changes.append(_change(CANCELLED, name, (before, after), since_us))
        else:
            changes.append(_change(ENDED, name, (origin or before, after), since_us))
    for name, origin in list(left.items()):
        place = new.index.row(name.topic, name.partition)
        if place is not None and _is_in_sync(new, place, origin):
            del left[name]
            changes.append(_change(ENDED, name, (origin, new.replicas[place] or ()), since_us))
    return left, changes


def _change(
    kind: ChangeEventKind, name: TopicPartition, states: tuple[Replicas, Replicas], since_us: int
) -> Change:
    before, after = map(_listed, states)
    subject = ChangedSubject(topic=name.topic, partition=name.partition, before=before, after=after)
    return Change(kind=kind, subject=subject, since_us=since_us)


def changed_rows(new: Ragged, old: Ragged, rows: Int64s) -> Iterator[int]:
    """Yield the rows whose list is another one than before; what either side does not know is left out."""
    before = old.take(rows)
    both = new.valid & before.valid
    is_other = both & (new.lengths != before.lengths)
    alike = np.flatnonzero(both & ~is_other).astype(np.int64)
    mine, others = new.take(alike), before.take(alike)
    differing = mine.row_of_value[mine.values != others.values]
    is_other[alike[differing]] = True
    yield from np.flatnonzero(is_other).tolist()


def _is_there(new: Partitions, rows: Int64s, name: TopicPartition) -> bool:
    row = new.index.row(name.topic, name.partition)
    return row is not None and bool(rows[row] >= 0)


def _is_in_sync(new: Partitions, row: int, before: Replicas) -> bool:
    """Return whether all replicas that were added are in sync."""
    replicas, isr = new.replicas[row], new.isr[row]
    return replicas is not None and isr is not None and set(replicas) - set(before) <= set(isr)


def _listed(replicas: Replicas) -> str:
    return ",".join(map(str, replicas))
