"""Reads the rows of one bucket from many files at once, some series at a time.

Rows are in order of series in every file, so that no more of a bucket is held than the row groups that
begin with the same series. A file that is not in order is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from rules.baseline.packed import bucket_of
from service.history.blocks import Block
from service.history.days import RowGroups


class BucketRows:
    """The rows of one bucket in one file, cut to a time span."""

    def __init__(
        self,
        file: RowGroups,
        bucket: int,
        buckets: int,
        span_ms: tuple[int, int],
        *,
        without: Sequence[int] = (),
    ) -> None:
        """`span_ms`: begin and end (excluded); `without`: ids of series that are left out."""
        self._file = file
        self._bucket = (bucket, buckets)
        self._without = np.array(without, np.int64)
        self._span_ms = span_ms
        self._groups = file.groups_of(bucket, buckets)
        self._bounds = [file.bounds(group) for group in self._groups]
        self._taken = 0  # row groups
        self._held: list[Block] = []  # rows that were read too early

    def __len__(self) -> int:
        """Return the number of row groups."""
        return len(self._groups)

    @property
    def edges(self) -> list[int] | None:
        """Return the last series of every row group; None: they are not in order, or have no statistics."""
        bounds = [bound for bound in self._bounds if bound is not None]
        pairs = pairwise(bounds)
        if len(bounds) < len(self) or any(earlier[1] > later[0] for earlier, later in pairs):
            return None
        return [last for _, last in bounds]

    def count_samples(self) -> int:
        """Return how many samples there are; one row group is held at a time."""
        blocks = (block for group in self._groups for block in self._read(group))
        return sum(int(np.count_nonzero(~np.isnan(block.values))) for block in blocks)

    def take(self, last: int | None) -> list[Block]:
        """Return the rows up to a series that were not taken before; None: all of them."""
        while self._taken < len(self) and self._begins_by(last):
            self._held += self._read(self._groups[self._taken])
            self._taken += 1
        held, self._held = self._held, []
        if last is None:
            return held
        blocks: list[Block] = []
        for block in held:
            is_due = block.series_id <= last
            if is_due.all():
                blocks.append(block)
            else:
                self._held.append(block.take(~is_due))
                blocks += [block.take(is_due)] if is_due.any() else []
        return blocks

    def _begins_by(self, last: int | None) -> bool:
        bounds = self._bounds[self._taken]
        return last is None or bounds is None or bounds[0] <= last

    def _read(self, group: int) -> Iterator[Block]:
        bucket, buckets = self._bucket
        for block in self._file.blocks(group):
            is_mine = bucket_of(block.series_id, buckets) == bucket
            if len(self._without):
                is_mine &= ~np.isin(block.series_id, self._without)
            cut = (block if is_mine.all() else block.take(is_mine)).between(*self._span_ms)
            if len(cut) and cut.samples:
                yield cut


def in_parts(files: Sequence[BucketRows]) -> Iterator[list[list[Block]]]:
    """Yield the rows of all files, series by series in order: in each part those of each file.

    All rows of a series are in one part. Parts are as large as the row groups of the file that has the
    most row groups.
    """
    edges = [file.edges for file in files]
    known_edges = [bounds for bounds in edges if bounds is not None]
    inner = max(known_edges, key=len)[:-1] if known_edges and len(known_edges) == len(edges) else []
    for edge in [*dict.fromkeys(inner), None]:
        part = [file.take(edge) for file in files]
        if any(part):
            yield part
