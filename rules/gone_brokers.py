"""Which partitions miss replicas on brokers that are gone, and whether that alone explains it.

A gone broker explains a partition only if all of the brokers that it misses are gone: bringing them back
cures it then. One live replica that is out of sync is a cause of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import Evidence, Scalar
from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.last_observation import microseconds
from rules.facts.observation_context import list_electable
from rules.facts.partitions import Partitions
from rules.facts.times import MICROSECOND
from rules.view import MICROSECONDS_PER_MS, View

GONE_BROKERS: Final = "gone_brokers"  # evidence: the gone brokers that a partition misses
GONE_REASON: Final = "brokers_gone"  # of a breach that they explain as a whole
BROKER: Final = "broker"  # in a row of the evidence, and the label of the findings that explain it


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Partitions that miss brokers which are gone."""

    view: View
    missed: Ragged  # per partition, the brokers that it misses
    by_gone: Bools  # where it misses at least one, and all of them are gone

    def by_gone_for(self, limit: timedelta) -> Bools:
        """Mark where it misses at least one, and all of them have been gone for at least `limit`."""
        latest = microseconds(self.view.now) - limit // MICROSECOND
        gone_us = self.view.memory.brokers.gone_us
        recent = np.array([broker for broker, at in gone_us.items() if at > latest], np.int64)
        mask = self.by_gone.copy()
        mask[self.missed.row_of_value[np.isin(self.missed.values, recent)]] = False
        return mask

    def details(self, row: int) -> Evidence:
        """Return as evidence which gone brokers a partition misses; nothing where there is none."""
        gone = self.view.memory.brokers.gone_us
        rows = [
            describe_gone(self.view, broker) for broker in self.missed[row] or () if broker in gone
        ]
        return {GONE_BROKERS: rows} if rows else {}


def describe_gone(view: View, broker: int) -> dict[str, Scalar]:
    """Return a gone broker: its last address, None if it was never listed, and for how long it is gone."""
    memory = view.memory.brokers
    entry = memory.listed.get(broker)
    return {
        BROKER: broker,
        "address": None if entry is None else f"{entry.host}:{entry.port}",
        "gone_ms": (microseconds(view.now) - memory.gone_us[broker]) // MICROSECONDS_PER_MS,
    }


def missing_replicas(view: View) -> Explained:
    """Return per partition the replicas that are not in sync."""
    partitions = view.snapshot.described
    is_known = partitions.replicas.valid & partitions.isr.valid
    return _explained(view, lambda: _without(partitions.replicas, partitions.isr), is_known)


def missing_leaders(view: View) -> Explained:
    """Return per partition without a leader the brokers that could be elected cleanly."""
    partitions = view.snapshot.described
    leaderless = ~partitions.leader.valid & partitions.replicas.valid
    return _explained(view, lambda: _once(list_electable(partitions, leaderless)), leaderless)


def gone_ids(view: View) -> Int64s:
    """Return the ids of the gone brokers."""
    return np.array(sorted(view.memory.brokers.gone_us), np.int64)


def contradicts_gone(partitions: Partitions, brokers: Int64s) -> Bools:
    """Mark the brokers that the placement still shows at work: two answers of the round disagree.

    A controller that fences a broker takes leadership and ISRs from it, but for the last one in an ISR.
    """
    led = partitions.leader.values[partitions.leader.valid]
    in_sync = partitions.isr.values[partitions.leader.valid[partitions.isr.row_of_value]]
    disagree: Bools = np.isin(brokers, np.concatenate([led, in_sync]))
    return disagree


def _explained(view: View, list_missed: Callable[[], Ragged], is_known: Bools) -> Explained:
    """Return what is missed; while no broker is gone, nothing is computed."""
    rows = len(is_known)
    gone = gone_ids(view)
    if not len(gone):
        nothing = Ragged.of([None] * rows)
        return Explained(view, nothing, np.zeros(rows, np.bool_))
    missed = list_missed()
    owner = missed.row_of_value
    is_gone = np.isin(missed.values, gone)
    counts = np.bincount(owner[is_gone], minlength=rows)
    by_gone = is_known & (missed.lengths > 0) & (counts == missed.lengths)
    return Explained(view, missed, by_gone)


def _once(lists: Ragged) -> Ragged:
    """Return each item of a row once: a broker may be in the ISR and in the last known ELR."""
    width = 1 + int(lists.values.max(initial=0))
    codes = np.unique(lists.row_of_value * width + lists.values)
    return _of_codes(codes, width, lists.valid)


def _without(lists: Ragged, others: Ragged) -> Ragged:
    """Return the items of each row that are not in the other list of the same row."""
    width = 1 + max(int(lists.values.max(initial=0)), int(others.values.max(initial=0)))
    codes = lists.row_of_value * width + lists.values
    is_rest = ~np.isin(codes, others.row_of_value * width + others.values)
    return _of_codes(codes[is_rest], width, lists.valid & others.valid)


def _of_codes(codes: Int64s, width: int, valid: Bools) -> Ragged:
    """Return lists from ascending rows: each code is row * width + item."""
    lengths = np.bincount(codes // width, minlength=len(valid))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int64)
    return Ragged(starts, codes % width, valid)


def count_led(partitions: Partitions, brokers: Int64s) -> Column:
    """Count the partitions that each broker leads, as metadata has it."""
    led = np.sort(partitions.leader.values[partitions.leader.valid])
    after = np.searchsorted(led, brokers, side="right")
    return Column.known((after - np.searchsorted(led, brokers, side="left")).astype(np.int64))
