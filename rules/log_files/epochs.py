"""Where two copies of one log part, by their leader epochs, as a follower finds it before it truncates.

A follower sends its latest leader epoch to the leader, which answers with the highest epoch of its own that is
not later, and where that one ends. The follower goes on with an earlier epoch until both know the same one.
Source: KIP-101, KIP-279, `LeaderEpochFileCache` and OffsetForLeaderEpoch of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rules.facts.log_states import EpochStart


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """An answer to OffsetForLeaderEpoch: the epoch that was found, and the first offset behind it."""

    leader_epoch: int
    end_offset: int


def end_of_epoch(starts: Sequence[EpochStart], log_end: int, epoch: int) -> EpochEnd | None:
    """Return where an epoch ends in a log, as its leader answers; None if the log has no epoch so late.

    `starts` are ordered. For an epoch before all of them the first of them begins where it ends.
    """
    earlier = [start for start in starts if start.leader_epoch <= epoch]
    later = [start for start in starts if start.leader_epoch > epoch]
    if later:
        not_later = earlier[-1].leader_epoch if earlier else epoch
        return EpochEnd(not_later, later[0].start_offset)
    is_latest = bool(earlier) and earlier[-1].leader_epoch == epoch
    return EpochEnd(epoch, log_end) if is_latest else None


def find_divergence(
    starts: Sequence[EpochStart], log_end: int, ends_in_new: Mapping[int, EpochEnd]
) -> int | None:
    """Return the first offset of the old log whose record the new log may not have.

    That is the end of the old log where the new one has all of it. None: the new log knows no leader epoch
    of the old one, or its answer for one is not there. `ends_in_new` are its answers, by the epoch of the old log.
    """
    epoch = starts[-1].leader_epoch if starts else None
    while epoch is not None:
        there = ends_in_new.get(epoch)
        if there is None:
            return None
        here = end_of_epoch(starts, log_end, there.leader_epoch)
        if here is None:
            return None
        if here.leader_epoch == there.leader_epoch:
            return min(here.end_offset, there.end_offset, log_end)
        epoch = here.leader_epoch
    return None
