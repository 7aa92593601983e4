"""The memory of rejected sequences as plain values for JSON.

The leaderships are columns, and are stored with the other columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rules.facts.episodes import Episode, LeaderChange, SequenceMemory
from rules.facts.identity import TopicPartition
from rules.facts.sequence_verdicts import Arrival, SequenceReason
from service.storage.formats.values import plain, read


class _Changes(NamedTuple):
    name: TopicPartition
    changes: tuple[LeaderChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sequences:
    """What is stored."""

    open: tuple[Episode, ...]
    ended: tuple[Episode, ...]
    changes: tuple[_Changes, ...]
    unreported: tuple[int, int | None] = (0, None)


def plain_sequences(memory: SequenceMemory) -> dict[str, Any]:
    """Return the memory, except the leaderships, as JSON values."""
    sequences = _Sequences(
        open=tuple(memory.open.values()),
        ended=memory.ended,
        changes=tuple(_Changes(*item) for item in memory.changes.items()),
        unreported=(memory.unreported, memory.unreported_us),
    )
    return dict(plain(sequences))


def sequences_of(stored: Any) -> SequenceMemory:
    """Read the memory that `plain_sequences` returned.

    Raises:
        LookupError, TypeError, ValueError: the values are malformed.
    """
    present = {name: [_with_arrivals(row) for row in stored[name]] for name in ("open", "ended")}
    sequences = read(_Sequences, {**stored, **present})
    unreported, unreported_us = sequences.unreported
    return SequenceMemory(
        open={episode.key: episode for episode in sequences.open},
        ended=sequences.ended,
        changes=dict(sequences.changes),
        unreported=unreported,
        unreported_us=unreported_us,
    )


def _with_arrivals(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return an episode with the arrivals that an older checkpoint lacks: it has only the proofs."""
    before = {SequenceReason.FILLED.value: Arrival.ARRIVED.value}
    rejections = [
        {"arrival": before.get(row.get("proof"), Arrival.AWAITED.value), **row}
        for row in episode["rejections"]
    ]
    return {**episode, "rejections": rejections}
