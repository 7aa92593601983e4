"""Keeps the history within bounds: of the older observations only some are stored.

The newest blocks hold every observation. Older blocks are merged by fours: one of four observations is
kept, repeatedly, up to one of 256; then they are forgotten. At an interval of 15 s these are all
observations of 6 hours, and observations at most 1, 4, 16 and 64 minutes apart for about six days in all.
With 10,000 partitions that all move at every observation this takes 100 MB. Where it would take more (more
partitions, or open transactions that separate the two ends of each) observations are thinned earlier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rules.time_lag.block import Block, merge

MERGED: Final = 4  # blocks into one
COARSE_BLOCKS: Final = 1  # of every larger step, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is remembered."""

    observations: int = 32  # of a block
    fine_blocks: int = 45  # with every observation, at least: 6 h at an interval of 15 s
    largest_step: int = MERGED**4
    most_bytes: int = 100 * 2**20  # of packed blocks


def thin(blocks: tuple[Block, ...], bounds: Bounds) -> tuple[Block, ...]:
    """Return the blocks, oldest first, merged and forgotten as far as the bounds require it."""
    while (step := _too_many(blocks, bounds)) is not None:
        blocks = _with_merged(blocks, step, bounds)
    while len(blocks) > 1 and sum(block.size_bytes for block in blocks) > bounds.most_bytes:
        [(step, count)] = Counter(block.step for block in blocks).most_common(1)
        blocks = _with_merged(blocks, step, bounds) if count >= MERGED else blocks[1:]
    return blocks


def _too_many(blocks: tuple[Block, ...], bounds: Bounds) -> int | None:
    """Return the step that has too many blocks, None if there is none."""
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
    return (*blocks[:first], merge(blocks[first:last]), *blocks[last:])
