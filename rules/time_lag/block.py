"""The ends of partitions at a run of observations, packed: 4 bytes per observation of an end that moved.

A track is one end of one partition. Tracks come in two halves: the high watermarks of all partitions,
then their last stable offsets; where both moved alike one column serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Int64s

STOOD: Final = -1  # the track has no column: its end did not move
LARGEST_SMALL: Final = np.iinfo(np.uint32).max

# From times, shape (observations, 1), and ends of some tracks, shape (observations, tracks), to other ends.
Change = Callable[[Int64s, Int64s], Int64s]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """The ends of all tracks at some observations; ends never go down from observation to observation."""

    step: int  # one of so many observations is stored
    start_us: int  # the observation before the first, microseconds since 1970-01-01 UTC
    times_us: Int64s  # of the observations, shape (observations,), ascending
    base: Int64s  # the ends at `start_us`, shape (tracks,)
    column: NDArray[np.int32]  # of `above`, or STOOD; shape (tracks,)
    above: NDArray[
        np.unsignedinteger[Any]
    ]  # by how much above the base, shape (observations, columns)

    @classmethod
    def pack(
        cls, *, step: int, start_us: int, times_us: Int64s, base: Int64s, ends: Int64s
    ) -> Block:
        """Pack the ends at some observations, shape (observations, tracks)."""
        above = ends - base
        moved = above[-1] > 0
        half = len(base) // 2
        alike = moved[:half] & np.all(above[:, :half] == above[:, half:], axis=0)
        own = moved.copy()
        own[half:] &= ~alike
        column = np.full(len(base), STOOD, np.int32)
        column[own] = np.arange(np.count_nonzero(own), dtype=np.int32)
        column[half:][alike] = column[:half][alike]
        is_small = above[-1].max(initial=0) <= LARGEST_SMALL
        return cls(
            step=step,
            start_us=start_us,
            times_us=times_us,
            base=base,
            column=column,
            above=above[:, own].astype(np.uint32 if is_small else np.uint64),
        )

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        arrays = (self.times_us, self.base, self.column, self.above)
        return sum(array.nbytes for array in arrays)

    @property
    def last(self) -> Int64s:
        """Return the ends at the last observation, shape (tracks,)."""
        every = np.arange(len(self.base), dtype=np.int64)
        return self.ends_at(np.full(len(every), len(self.times_us) - 1), every)

    def ends_at(self, observation: Int64s, track: Int64s) -> Int64s:
        """Return the ends of tracks at observations, pair by pair; -1 is the observation before the first."""
        ends = self.base[track].copy()
        column = self.column[track]
        moved = np.flatnonzero((column != STOOD) & (observation >= 0))
        ends[moved] += self.above[observation[moved], column[moved]].astype(np.int64)
        return ends

    def dense(self) -> Int64s:
        """Return all ends, shape (observations, tracks)."""
        ends = np.repeat(self.base[np.newaxis], len(self.times_us), axis=0)
        moved = self.column != STOOD
        ends[:, moved] += self.above[:, self.column[moved]].astype(np.int64)
        return ends

    def take(self, tracks: Int64s) -> Block:
        """Return the block with these tracks in this order; a negative number is a track without ends."""
        inside = tracks >= 0
        base = np.zeros(len(tracks), np.int64)
        column = np.full(len(tracks), STOOD, np.int32)
        base[inside], column[inside] = self.base[tracks[inside]], self.column[tracks[inside]]
        return replace(self, base=base, column=column)

    def begin(self, tracks: Int64s, ends: Int64s) -> Block:
        """Set the ends of tracks without ends to their first observed ones."""
        base = self.base.copy()
        base[tracks] = ends
        return replace(self, base=base)

    def change_ends(self, tracks: Int64s, change: Change) -> Block:
        """Return the block with other ends of some tracks, including those before the first observation."""
        ends, base = self.dense(), self.base.copy()
        times = self.times_us[:, np.newaxis]
        ends[:, tracks] = change(times, ends[:, tracks])
        start = np.array([[self.start_us]], np.int64)
        base[tracks] = change(start, base[np.newaxis, tracks])[0]
        return Block.pack(
            step=self.step, start_us=self.start_us, times_us=self.times_us, base=base, ends=ends
        )

    def shift_times(self, by_us: int) -> Block:
        """Return the block with all times moved."""
        return replace(self, start_us=self.start_us + by_us, times_us=self.times_us + by_us)


def merge(blocks: tuple[Block, ...]) -> Block:
    """Merge n neighbouring blocks, oldest first, into one with every nth observation."""
    keep = slice(len(blocks) - 1, None, len(blocks))
    first = blocks[0]
    return Block.pack(
        step=first.step * len(blocks),
        start_us=first.start_us,
        times_us=np.concatenate([block.times_us for block in blocks])[keep],
        base=first.base,
        ends=np.concatenate([block.dense() for block in blocks])[keep],
    )
