"""Fencing episodes in a checkpoint.

A checkpoint is written in every round, and most episodes do not change between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rules.facts.fencing import CountedRise, FencingEpisode, FencingMemory, OwnAbort
from service.storage.formats.arrays import Arrays, join_texts, read_text, text_of
from service.storage.formats.values import plain, read, remembered_text

# Absent in older checkpoints.
EPISODES: Final = "fencing.episodes"
OTHERS: Final = "fencing"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """What is stored beside the episodes."""

    aborts: tuple[OwnAbort, ...]
    counted_us: dict[str, int]
    waiting: tuple[CountedRise, ...]
    dropped: int


def put_fencing(into: Arrays, memory: FencingMemory) -> None:
    """Add the episodes to the arrays of a checkpoint."""
    into[EPISODES] = join_texts({each.id: remembered_text(each) for each in memory.episodes})
    others = _Others(
        aborts=memory.aborts,
        counted_us=dict(memory.counted_us),
        waiting=memory.waiting,
        dropped=memory.dropped,
    )
    into[OTHERS] = text_of(plain(others))


def fencing_of(arrays: Arrays) -> FencingMemory:
    """Read the episodes; there are none in a checkpoint of an older version.

    Raises:
        LookupError, TypeError, ValueError: the stored values are malformed.
    """
    if OTHERS not in arrays:
        return FencingMemory()
    stored: dict[str, Any] = read_text(arrays[EPISODES])
    episodes = [read(FencingEpisode, row) for row in stored.values()]
    others = read(_Others, read_text(arrays[OTHERS]))
    return FencingMemory(
        open={each.key: each for each in episodes if each.ended_us is None},
        ended=tuple(each for each in episodes if each.ended_us is not None),
        aborts=others.aborts,
        counted_us=others.counted_us,
        waiting=others.waiting,
        dropped=others.dropped,
    )
