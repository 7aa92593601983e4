"""Rates of offsets between rounds, by elapsed time."""

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
    """Offsets per second, NaN where unknown, and how many offsets went back."""

    values: Floats
    went_back: int  # counters that went down: rewinds, truncations, topics that were made anew


def rates_between(
    now: Column, now_us: int, before: Column, before_us: Column, *, longest_us: int
) -> Rates:
    """Return the rates of a column of offsets between two observations, row by row."""
    elapsed = now_us - before_us.values
    is_known = now.valid & before.valid & before_us.valid
    moved = now.values - before.values
    back = is_known & (moved < 0)
    has_rate = is_known & ~back & (elapsed > 0) & (elapsed <= longest_us)
    seconds = np.where(has_rate, elapsed, 1) / SECOND_US
    return Rates(np.where(has_rate, moved / seconds, np.nan), int(np.count_nonzero(back)))


class LogEnds:
    """The end offset of each log when it was last observed; of one cluster."""

    def __init__(self) -> None:
        self._partitions = Partitions.none()
        self._ends = Column.absent(0)
        self._seen_us = Column.absent(0)

    def shift(self, by_us: int) -> None:
        """Move all times along with a step of the clock."""
        times = self._seen_us
        self._seen_us = Column(np.where(times.valid, times.values + by_us, 0), times.valid)

    def rates(self, partitions: Partitions, ends: Column, now_us: int, *, longest_us: int) -> Rates:
        """Return the growth rate of each log since it was last observed, and remember this observation."""
        rows = matching_rows(partitions, self._partitions, needs_id=False)
        before, seen_us = self._ends.take(rows), self._seen_us.take(rows)
        grown = rates_between(ends, now_us, before, seen_us, longest_us=longest_us)
        anew = _count_recreated(partitions, self._partitions)
        now = Column(np.full(len(ends), now_us, np.int64), ends.valid)
        self._partitions = partitions
        self._ends = either(ends.valid, ends, before)
        self._seen_us = either(ends.valid, now, seen_us)
        return Rates(grown.values, grown.went_back + anew)


def _count_recreated(new: Partitions, old: Partitions) -> int:
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
