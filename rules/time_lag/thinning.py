"""Keeps what is remembered within bounds: of the older observations only some are kept.

The newest blocks hold every observation. What is older is merged by fours: of four observations one is
kept, again and again, up to one of 256; then it is forgotten. At an interval of 15 s that is every
search for 6 hours, and observations of at most a minute, 4, 16 and 64 minutes apart for some six days in all.
With 10,000 partitions that all move at every observation this takes 100 MB. Where more would be taken
(more partitions, or open transactions that make a second end of each) observations are thinned earlier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rules.time_lag.block import Block, merged

MERGED: Final = 4  # blocks into one
COARSE_BLOCKS: Final = 1  # of every larger step, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is remembered."""

    observations: int = 32  # of a block
    fine_blocks: int = 45  # with every observation, at least: 6 h at an interval of 15 s
    largest_step: int = MERGED**4
    most_bytes: int = 100 * 2**20  # of packed blocks


def thinned(blocks: tuple[Block, ...], bounds: Bounds) -> tuple[Block, ...]:
    """Return the blocks, oldest first, merged and forgotten as far as the bounds want it."""
    while (step := _too_many(blocks, bounds)) is not None:
        blocks = _with_merged(blocks, step, bounds)
    while len(blocks) > 1 and sum(block.size_bytes for block in blocks) > bounds.most_bytes:
        [(step, count)] = Counter(block.step for block in blocks).most_common(1)
        blocks = _with_merged(blocks, step, bounds) if count >= MERGED else blocks[1:]
    return blocks


def _too_many(blocks: tuple[Block, ...], bounds: Bounds) -> int | None:
    """Return the step of which there are more blocks than are wanted."""
    for step, count in Counter(block.step for block in blocks).items():
        if count >= MERGED + (bounds.fine_blocks if step == 1 else COARSE_BLOCKS):
            return step
    return None


def _with_merged(blocks: tuple[Block, ...], step: int, bounds: Bounds) -> tuple[Block, ...]:
    """Merge the oldest blocks of a step; of the largest one the oldest is forgotten."""
    if step >= bounds.largest_step:
        return blocks[1:]
    first = next(place for place, block in enumerate(blocks) if block.step == step)
    last = first + MERGED
    return (*blocks[:first], merged(blocks[first:last]), *blocks[last:])
