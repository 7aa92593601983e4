"""Finds batches whose header contradicts itself or its neighbours, or whose checksum is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import crc32c
import numpy as np

from collectors.wire.batches import HEADER
from rules.facts.column import Bools
from rules.facts.log_files import BatchBlock, FileProblem, ProblemKind

CHECKED_FROM: Final = 21  # byte of a batch from which on the checksum covers it
PIECE: Final = 1024 * 1024  # bytes that are read at once


def sound_headers(block: BatchBlock) -> Bools:
    """Return which headers have numbers that a batch can have."""
    return (
        (block.size >= HEADER.size)
        & (block.base_offset >= 0)
        & (block.last_offset >= block.base_offset)
        & (block.record_count >= 0)
        & (block.record_count <= block.last_offset - block.base_offset + 1)
    )


def header_problems(block: BatchBlock, is_sound: Bools) -> Iterator[FileProblem]:
    """Yield a problem for each header that cannot be."""
    for row in np.flatnonzero(~is_sound).tolist():
        yield _problem(block, row, f"the header of a batch is damaged: {_numbers(block, row)}")


def order_problems(block: BatchBlock, previous: int) -> Iterator[FileProblem]:
    """Yield the batches whose offsets do not ascend; `previous` is the last offset before the block.

    Such a batch is used all the same: its bytes are there.
    """
    before = np.concatenate(([previous], block.last_offset[:-1])).astype(np.int64)
    for row in np.flatnonzero(block.base_offset <= before).tolist():
        why = f"offsets do not ascend: {block.base_offset[row]} after {before[row]}"
        yield _problem(block, row, why)


def _numbers(block: BatchBlock, row: int) -> str:
    return (
        f"offsets {block.base_offset[row]} to {block.last_offset[row]}, "
        f"{block.record_count[row]} records, {block.size[row]} bytes"
    )


def checksum_problems(block: BatchBlock, number: int) -> Iterator[FileProblem]:
    """Yield the batches whose bytes do not fit their checksum; `number` is the open file."""
    for row, (position, size, written) in enumerate(
        zip(block.position.tolist(), block.size.tolist(), block.crc.tolist(), strict=True)
    ):
        if _checksum(number, position + CHECKED_FROM, position + size) != written:
            base, last = block.base_offset[row], block.last_offset[row]
            why = f"the checksum of the batch with offsets {base} to {last} is wrong: its bytes are damaged"
            yield _problem(block, row, why, ProblemKind.BAD_CHECKSUM)


def _checksum(number: int, start: int, end: int) -> int:
    value = 0
    while start < end:
        piece = os.pread(number, min(PIECE, end - start), start)
        if not piece:
            break
        value = crc32c.crc32c(piece, value)
        start += len(piece)
    return value


def _problem(
    block: BatchBlock, row: int, why: str, kind: ProblemKind = ProblemKind.BAD_HEADER
) -> FileProblem:
    position = int(block.position[row])
    end = position + int(block.size[row])
    return FileProblem(kind=kind, path=block.path, position=position, end=end, why=why)
