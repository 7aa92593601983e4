"""Hours of history: the rounds of a segment as one packed file, until its day is over."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.baseline.layout import hour_folder
from service.history.ahead import Segment
from service.history.blocks import Block, Codes, Int64s, write_by_bucket
from service.history.days import EPOCH
from service.history.folder import Folder

HOUR_MS: Final = 3_600_000
HOUR: Final = timedelta(hours=1)


def hour_at(hour: int) -> datetime:
    """Return when an hour begins; `hour`: hours since 1970-01-01 UTC."""
    return EPOCH + hour * HOUR


def packed_hour(segment: Segment, left_out: Collection[int] = ()) -> Block | None:
    """Return the rounds of a segment as a block; None if it holds no sample.

    Of two rounds at one place of the grid the later one counts where it tells something. Series that
    are `left_out` have no row.
    """
    if not segment.rounds or segment.step_ms <= 0:
        return None
    step = segment.step_ms
    slots = [one.at_ms // step for one in segment.rounds]
    first, count = min(slots), max(slots) - min(slots) + 1
    ids, metric = _all_series(segment)
    values = np.full((count, len(ids)), np.nan, np.float32)
    for slot, one in zip(slots, segment.rounds, strict=True):
        row, sampled = values[slot - first], one.values
        if one.ids is ids:
            np.copyto(row, sampled, where=~np.isnan(sampled))
        else:
            places = np.searchsorted(ids, one.ids)
            row[places] = np.where(np.isnan(sampled), row[places], sampled)
    if np.isnan(values).all():
        return None
    block = Block(
        series_id=ids,
        metric=metric,
        start_ms=first * step,
        step_ms=step,
        values=values.T,  # copied bucket by bucket, when it is written
    )
    return block.take(~np.isin(ids, list(left_out))) if left_out else block


def write_hour(folder: Folder, hour: int, segment: bytes, block: Block) -> str:
    """Write the file of a segment; written twice, it is the same file. Return its path.

    Raises:
        StoreError: the folder cannot be written.
    """
    name = f"part-{block.start_ms:014d}-{zlib.crc32(segment):08x}.parquet"
    path = f"{hour_folder(hour_at(hour))}/{name}"
    folder.write(path, lambda stream: write_by_bucket(stream, [block], folder.buckets))
    return path


def _all_series(segment: Segment) -> tuple[Int64s, Codes]:
    """Return all series of a segment in order of ids, unless all rounds have the same ones."""
    indexes = {id(one.ids): (one.ids, one.metric) for one in segment.rounds}
    if len(indexes) == 1:
        return next(iter(indexes.values()))
    ids = np.concatenate([ids for ids, _ in indexes.values()])
    metric = np.concatenate([metric for _, metric in indexes.values()])
    unique, place = np.unique(ids, return_index=True)
    return unique, metric[place]
