"""When the end of a partition passed an offset, as far as it is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rules.facts.column import Bools, Int64s
from rules.time_lag.block import Block
from rules.time_lag.ends import EndHistory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassedOffsets:
    """When ends passed offsets, one row per requested offset."""

    at_us: Int64s  # microseconds since 1970-01-01 UTC; 0 where not known
    within_us: Int64s  # the truth is not further away than this
    is_known: Bools  # False: it was before anything that is remembered of the track


def find_passed(history: EndHistory, tracks: Int64s, offsets: Int64s) -> PassedOffsets:
    """Return when each track's end passed an offset, that is, when that offset became readable.

    Every offset must be below the end at the last observation. Between two observations the end is
    interpolated linearly. Cost: about 15 ms for 60,000 offsets.
    """
    at_us, within_us = np.zeros(len(tracks), np.int64), np.zeros(len(tracks), np.int64)
    first = history.first_end
    is_known = first.valid[tracks] & (offsets >= first.values[tracks])
    pending = np.flatnonzero(is_known)
    for stretch in _newest_first(history):
        is_here = stretch.base[tracks[pending]] <= offsets[pending]
        here = pending[is_here]
        not_before = history.first_us[tracks[here]]
        at_us[here], within_us[here] = _between(stretch, tracks[here], offsets[here], not_before)
        pending = pending[~is_here]
        if not len(pending):
            break
    was_filled = is_known & (at_us <= history.filled_until_us[tracks])
    within_us = np.where(was_filled, np.maximum(within_us, history.filled_us[tracks]), within_us)
    return PassedOffsets(at_us=at_us, within_us=within_us, is_known=is_known)


def _newest_first(history: EndHistory) -> Iterator[Stretch]:
    yield _Recent.of(history)
    yield from reversed(history.blocks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Recent:
    """The observations that are not packed yet."""

    start_us: int
    times_us: Int64s
    base: Int64s
    ends: Int64s

    @classmethod
    def of(cls, history: EndHistory) -> _Recent:
        observations, older = history.observations, history.blocks[-1] if history.blocks else None
        return cls(
            start_us=history.older_us,
            times_us=np.array([observation.at_us for observation in observations], np.int64),
            base=observations[0].ends if older is None else older.last,
            ends=np.stack([observation.ends for observation in observations]),
        )

    def ends_at(self, observation: Int64s, track: Int64s) -> Int64s:
        return np.where(observation < 0, self.base[track], self.ends[observation, track])


Stretch = Block | _Recent  # a run of observations


def _between(
    stretch: Stretch, tracks: Int64s, offsets: Int64s, not_before: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the time between two observations at which the end passed, and its greatest error.

    The first observation above the offset is found by binary search, for all offsets at once.
    """
    low = np.zeros(len(tracks), np.int64)
    high = np.full(len(tracks), len(stretch.times_us) - 1, np.int64)
    for _ in range(len(stretch.times_us).bit_length()):
        middle = (low + high) // 2
        is_past = stretch.ends_at(middle, tracks) > offsets
        low, high = (
            np.where(is_past, low, np.minimum(middle + 1, high)),
            np.where(is_past, middle, high),
        )
    times = np.concatenate([np.array([stretch.start_us], np.int64), stretch.times_us])
    since, until = np.maximum(times[low], not_before), times[low + 1]
    was, became = stretch.ends_at(low - 1, tracks), stretch.ends_at(low, tracks)
    took = np.maximum(until - since, 0)
    share = (offsets - was + 1) / np.maximum(became - was + 1, 1)
    before = (took * share).astype(np.int64)
    return since + before, np.maximum(before, took - before)
