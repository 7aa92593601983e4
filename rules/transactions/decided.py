"""For how long a decided transaction has waited for its marker: never counted from its beginning.

A last stable offset means as long as its transaction was open. What is late is told by the
decision alone: the round that first saw it, and a later one in which it still holds.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import Final

from rules.facts.last_observation import microseconds
from rules.transactions.lso_blocker import LsoBlocker
from rules.view import View

# A coordinator writes markers within milliseconds and tries again at once; a leader that is restarted
# is back or replaced by then.
STUCK: Final = timedelta(seconds=30)


class MarkerDelay(Enum):
    """What can be said of a marker that is not there yet."""

    BEING_WRITTEN = auto()
    FIRST_OBSERVATION = auto()  # since when it waits is not known: Tidemark has just begun
    STUCK = auto()


def marker_delay(view: View, decided_since_us: int) -> MarkerDelay:
    """Judge a marker by the time of the round that first saw its transaction decided."""
    waits_us = microseconds(view.now) - decided_since_us
    if waits_us >= STUCK // timedelta(microseconds=1):
        return MarkerDelay.STUCK
    began = view.memory.transactions.began_us
    return MarkerDelay.FIRST_OBSERVATION if decided_since_us == began else MarkerDelay.BEING_WRITTEN


def decided_since_us(view: View, held: LsoBlocker) -> int | None:
    """Return which round first saw the transaction of a hold-up decided; None: it may be open."""
    if held.producer is None:
        return held.first_seen_us
    entry = held.transaction
    seen = None if entry is None else view.memory.transactions.open.get(entry.transactional_id)
    return None if seen is None else seen.state_since_us
