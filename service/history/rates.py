"""Rates of offsets between rounds, over the time that truly passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.facts.times import SECOND_US
from rules.facts.unchanged_since import either

Floats: TypeAlias = NDArray[np.float64]

MAX_ROUNDS: Final = 3  # a rate over a longer gap says nothing of any time in it


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Offsets per second, NaN where there is none, and how many offsets went back."""

    values: Floats
    went_back: int  # counters that went down: rewinds, truncations, topics that were made anew


def rates_between(
    now: Column, now_us: int, before: Column, before_us: Column, *, longest_us: int
) -> Rates:
    """Return the rates of columns of offsets from one observation to the next, by rows."""
    elapsed = now_us - before_us.values
    known = now.valid & before.valid & before_us.valid
    moved = now.values - before.values
    back = known & (moved < 0)
    told = known & ~back & (elapsed > 0) & (elapsed <= longest_us)
    seconds = np.where(told, elapsed, 1) / SECOND_US
    return Rates(np.where(told, moved / seconds, np.nan), int(np.count_nonzero(back)))


class LogEnds:
    """Where logs ended when each was last seen; of one cluster."""

    def __init__(self) -> None:
        self._partitions = Partitions.none()
        self._ends = Column.absent(0)
        self._seen_us = Column.absent(0)

    def shift(self, by_us: int) -> None:
        """Move all times along with a step of the clock."""
        times = self._seen_us
        self._seen_us = Column(np.where(times.valid, times.values + by_us, 0), times.valid)

    def rates(self, partitions: Partitions, ends: Column, now_us: int, *, longest_us: int) -> Rates:
        """Return how fast each log grew since it was last seen, and remember this observation."""
        rows = matching_rows(partitions, self._partitions, needs_id=False)
        before, seen_us = self._ends.take(rows), self._seen_us.take(rows)
        found = rates_between(ends, now_us, before, seen_us, longest_us=longest_us)
        anew = _made_anew(partitions, self._partitions)
        now = Column(np.full(len(ends), now_us, np.int64), ends.valid)
        self._partitions = partitions
        self._ends = either(ends.valid, ends, before)
        self._seen_us = either(ends.valid, now, seen_us)
        return Rates(found.values, found.went_back + anew)


def _made_anew(new: Partitions, old: Partitions) -> int:
    """Count the partitions of topics that were deleted and created again."""
    if new is old:
        return 0
    counts: Int64s = np.diff(new.index.starts)
    total = 0
    for position, topic in enumerate(new.index.topics):
        mine, theirs = new.topic_ids[position], old.id_of(topic)
        if mine is not None and theirs is not None and mine != theirs:
            total += int(counts[position])
    return total
