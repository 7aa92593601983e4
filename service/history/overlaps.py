"""Samples of one series on several grids: where one was taken at the time of another one, it gives way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from service.history.blocks import Block, Bools, Int64s


def without_overlaps(blocks: Sequence[Block], later: Sequence[Block]) -> list[Block]:
    """Return the blocks with a gap wherever one of the later blocks, of another grid, has a sample of the series."""
    return [reduce(_clear, later, block) for block in blocks]


def _clear(block: Block, later: Block) -> Block:
    if later.step_ms == block.step_ms:
        return block
    if later.start_ms >= block.end_ms or block.start_ms >= later.end_ms:
        return block
    _, mine, theirs = np.intersect1d(block.series_id, later.series_id, return_indices=True)
    is_covered = _covered(block, ~np.isnan(later.values[theirs]), later)
    if not is_covered.any():
        return block
    values = block.values.copy()
    values[mine] = np.where(is_covered, np.float32(np.nan), values[mine])
    return replace(block, values=values)


def _covered(block: Block, is_known: Bools, later: Block) -> Bools:
    """Return in which cells of a block's grid another grid has a sample, row by row."""
    starts: Int64s = block.start_ms + np.arange(block.samples, dtype=np.int64) * block.step_ms
    low = (starts - later.start_ms) // later.step_ms
    high = -((later.start_ms - starts - block.step_ms) // later.step_ms)
    known_before = np.zeros((len(is_known), later.samples + 1), np.int32)
    np.cumsum(is_known, axis=1, out=known_before[:, 1:])
    low, high = (edge.clip(0, later.samples) for edge in (low, high))
    covered: Bools = known_before[:, high] > known_before[:, low]
    return covered
