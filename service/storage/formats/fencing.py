"""The memory of fencing episodes as plain values for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rules.facts.fencing import CountedRise, FencingEpisode, FencingMemory, OwnAbort
from service.storage.formats.values import plain, read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fencing:
    """What is stored; what an older checkpoint lacks was not observed."""

    open: tuple[FencingEpisode, ...] = ()
    ended: tuple[FencingEpisode, ...] = ()
    aborts: tuple[OwnAbort, ...] = ()
    counted_us: dict[str, int]
    waiting: tuple[CountedRise, ...] = ()
    dropped: int = 0


def plain_fencing(memory: FencingMemory) -> dict[str, Any]:
    """Return the memory as JSON values."""
    stored = _Fencing(
        open=tuple(memory.open.values()),
        ended=memory.ended,
        aborts=memory.aborts,
        counted_us=dict(memory.counted_us),
        waiting=memory.waiting,
        dropped=memory.dropped,
    )
    return dict(plain(stored))


def fencing_of(stored: Any) -> FencingMemory:
    """Read the memory that `plain_fencing` returned.

    Raises:
        LookupError, TypeError, ValueError: the values are malformed.
    """
    fencing = read(_Fencing, stored)
    return FencingMemory(
        open={episode.key: episode for episode in fencing.open},
        ended=fencing.ended,
        aborts=fencing.aborts,
        counted_us=fencing.counted_us,
        waiting=fencing.waiting,
        dropped=fencing.dropped,
    )
