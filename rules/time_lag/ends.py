"""The ends of partitions at earlier observations, from which follows when an end passed an offset.

One observation per judged round is remembered, for both ends of every partition. Ends that an observation
lacks are interpolated linearly when the partition is observed again. A topic that was created again is
another topic, and offsets above an end that went down are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.time_lag.block import Block, Change
from rules.time_lag.thinning import Bounds, thin

DEFAULT: Final = Bounds()

BlockTest = Callable[[Block], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The ends of all tracks at one observation."""

    at_us: int  # microseconds since 1970-01-01 UTC
    ends: Int64s  # shape (tracks,); 0 where nothing was seen yet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndHistory:
    """What is remembered of one cluster id.

    A track is one end of one partition: the high watermarks by rows of `partitions`, then the last
    stable offsets. Ends never go down from observation to observation.
    """

    cluster_id: str
    partitions: Partitions
    first_end: Column  # per track, the first observed end; absent: never observed
    first_us: Int64s  # when that was, or up to when all older observations were forgotten
    seen_us: Int64s  # the last observation that saw the track
    # The longest time that was filled in, and when the last one ended; 0: every observation saw it.
    filled_us: Int64s
    filled_until_us: Int64s
    blocks: tuple[Block, ...]  # older observations, oldest first
    observations: tuple[Ends, ...]  # later ones, at least one
    bounds: Bounds

    @property
    def now_us(self) -> int:
        """Return the time of the last observation."""
        return self.observations[-1].at_us

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes, about."""
        recent = sum(observation.ends.nbytes for observation in self.observations)
        return recent + sum(block.size_bytes for block in self.blocks)

    @property
    def older_us(self) -> int:
        """Return the time of the observation before the first of `observations`."""
        return int(self.blocks[-1].times_us[-1]) if self.blocks else self.observations[0].at_us


def advance(  # noqa: PLR0913 - what an observation is made of
    old: EndHistory | None,
    *,
    cluster_id: str,
    partitions: Partitions,
    offsets: Offsets,
    now_us: int,
    bounds: Bounds = DEFAULT,
) -> EndHistory:
    """Return the history with one more observation; rows of `partitions` begin with those of `offsets`.

    Partitions that are not among `partitions` are forgotten. If the clock was set back in between, all
    remembered times move with it.
    """
    seen = _tracks_of(offsets, len(partitions))
    if old is None or old.cluster_id != cluster_id:
        return _begin(cluster_id, partitions, seen, now_us, bounds)
    history = shift_times(old, min(now_us - old.now_us, 0))
    history = _renumber(history, partitions)
    history = _begin_tracks(history, seen, now_us)
    history = _fill_in(_cut_above(history, seen), seen, now_us)
    last = Ends(now_us, np.where(seen.valid, seen.values, history.observations[-1].ends))
    return _pack(
        replace(
            history,
            seen_us=np.where(seen.valid, now_us, history.seen_us),
            observations=(*history.observations, last),
        )
    )


def shift_times(history: EndHistory, by_us: int) -> EndHistory:
    """Return the history with all times moved, so that durations survive a step of the clock."""
    if not by_us:
        return history
    return replace(
        history,
        first_us=history.first_us + by_us,
        seen_us=history.seen_us + by_us,
        filled_until_us=history.filled_until_us + by_us,
        blocks=tuple(block.shift_times(by_us) for block in history.blocks),
        observations=tuple(
            replace(observation, at_us=observation.at_us + by_us)
            for observation in history.observations
        ),
    )


def _tracks_of(offsets: Offsets, rows: int) -> Column:
    return offsets.high_watermark.padded(rows).joined(offsets.last_stable_offset.padded(rows))


def _begin(
    cluster_id: str, partitions: Partitions, seen: Column, now_us: int, bounds: Bounds
) -> EndHistory:
    timestamp = np.full(len(seen), now_us, np.int64)
    return EndHistory(
        cluster_id=cluster_id,
        partitions=partitions,
        first_end=seen,
        first_us=timestamp,
        seen_us=timestamp,
        filled_us=np.zeros(len(seen), np.int64),
        filled_until_us=np.zeros(len(seen), np.int64),
        blocks=(),
        observations=(Ends(now_us, seen.values),),
        bounds=bounds,
    )


def _renumber(history: EndHistory, partitions: Partitions) -> EndHistory:
    """Return the history with the present numbering of partitions."""
    rows = matching_rows(partitions, history.partitions, needs_id=False)
    older = len(history.partitions)
    if older == len(rows) and np.array_equal(rows, np.arange(older)):
        return replace(history, partitions=partitions)
    tracks = np.concatenate([rows, np.where(rows >= 0, rows + older, -1)])

    def taken(values: Int64s) -> Int64s:
        return Column.known(values).take(tracks).values

    return replace(
        history,
        partitions=partitions,
        first_end=history.first_end.take(tracks),
        first_us=taken(history.first_us),
        seen_us=taken(history.seen_us),
        filled_us=taken(history.filled_us),
        filled_until_us=taken(history.filled_until_us),
        blocks=tuple(block.take(tracks) for block in history.blocks),
        observations=tuple(
            replace(observation, ends=taken(observation.ends))
            for observation in history.observations
        ),
    )


def _begin_tracks(history: EndHistory, seen: Column, now_us: int) -> EndHistory:
    """Begin tracks that were never observed, as if they had always had their present ends."""
    new = seen.valid & ~history.first_end.valid
    if not new.any():
        return history
    tracks, ends = np.flatnonzero(new).astype(np.int64), seen.values[new]
    return replace(
        history,
        first_end=Column(
            np.where(new, seen.values, history.first_end.values), history.first_end.valid | new
        ),
        first_us=np.where(new, now_us, history.first_us),
        seen_us=np.where(new, now_us, history.seen_us),
        blocks=tuple(block.begin(tracks, ends) for block in history.blocks),
        observations=tuple(
            replace(observation, ends=np.where(new, seen.values, observation.ends))
            for observation in history.observations
        ),
    )


def _cut_above(history: EndHistory, seen: Column) -> EndHistory:
    """Forget the offsets above an end that went down: they will be written again."""
    fallen = seen.valid & (seen.values < history.observations[-1].ends)
    if not fallen.any():
        return history
    tracks = np.flatnonzero(fallen).astype(np.int64)
    limit = seen.values[tracks]
    first = history.first_end
    lowered = np.where(fallen, np.minimum(first.values, seen.values), first.values)

    def is_above(block: Block) -> bool:
        return bool(np.any(block.last[tracks] > limit))

    cut = _change(history, tracks, lambda _, ends: np.minimum(ends, limit), is_above)
    return replace(cut, first_end=Column(lowered, first.valid))


def _fill_in(history: EndHistory, seen: Column, now_us: int) -> EndHistory:
    """Interpolate the ends of tracks that moved while observations lacked them."""
    moved: Bools = seen.valid & (seen.values > history.observations[-1].ends)
    returned = moved & (history.seen_us < history.now_us)
    if not returned.any():
        return history
    tracks = np.flatnonzero(returned).astype(np.int64)
    since, ends_then = history.seen_us[tracks], history.observations[-1].ends[tracks]
    grown, took = seen.values[tracks] - ends_then, np.maximum(now_us - since, 1)
    oldest = int(since.min())

    def evenly(times: Int64s, ends: Int64s) -> Int64s:
        share = np.clip((times - since) / took, 0.0, 1.0)
        return np.where(times > since, ends_then + (grown * share).astype(np.int64), ends)

    filled = _change(history, tracks, evenly, lambda block: int(block.times_us[-1]) > oldest)
    longest, until = history.filled_us.copy(), history.filled_until_us.copy()
    longest[tracks], until[tracks] = np.maximum(longest[tracks], took), now_us
    return replace(filled, filled_us=longest, filled_until_us=until)


def _change(
    history: EndHistory, tracks: Int64s, change: Change, is_touched: BlockTest
) -> EndHistory:
    def change_ends(observation: Ends) -> Ends:
        ends = observation.ends.copy()
        timestamp = np.array([[observation.at_us]], np.int64)
        ends[tracks] = change(timestamp, ends[np.newaxis, tracks])[0]
        return replace(observation, ends=ends)

    return replace(
        history,
        blocks=tuple(
            block.change_ends(tracks, change) if is_touched(block) else block
            for block in history.blocks
        ),
        observations=tuple(change_ends(observation) for observation in history.observations),
    )


def _pack(history: EndHistory) -> EndHistory:
    """Pack the observations once there are enough, all but the last; forget those that are too old."""
    observations, enough = history.observations, history.bounds.observations
    if len(observations) <= enough:
        return history
    recent, last = observations[:enough], observations[enough:]
    older = history.blocks[-1] if history.blocks else None
    block = Block.pack(
        step=1,
        start_us=history.older_us,
        times_us=np.array([observation.at_us for observation in recent], np.int64),
        base=recent[0].ends if older is None else older.last,
        ends=np.stack([observation.ends for observation in recent]),
    )
    blocks = thin((*history.blocks, block), history.bounds)
    return _forget_old(replace(history, blocks=blocks, observations=last))


def _forget_old(history: EndHistory) -> EndHistory:
    """Let tracks begin where the oldest block does."""
    oldest = history.blocks[0]
    later = history.first_end.valid & (history.first_us < oldest.start_us)
    if not later.any():
        return history
    first = history.first_end
    return replace(
        history,
        first_end=Column(np.where(later, oldest.base, first.values), first.valid),
        first_us=np.where(later, oldest.start_us, history.first_us),
    )
