"""For how long a decided transaction has waited for its marker, never counted from its start.

A last stable offset is unchanged for as long as its transaction was open. Whether the marker is late follows
from the decision alone: the round that first observed it, and a later one in which it still waits.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import Final

from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.transactions.lso_blocker import LsoBlocker
from rules.view import View

# A coordinator writes markers within milliseconds and tries again at once; a leader that is restarted
# is back or replaced by then.
STUCK: Final = timedelta(seconds=30)


class MarkerDelay(Enum):
    """The state of a marker that is not written yet."""

    BEING_WRITTEN = auto()
    FIRST_OBSERVATION = auto()  # since when it waits is not known: Tidemark has just started
    STUCK = auto()


def marker_delay(view: View, decided_since_us: int) -> MarkerDelay:
    """Judge a marker by the time of the round that first observed the decision."""
    waits_us = microseconds(view.now) - decided_since_us
    if waits_us >= STUCK // MICROSECOND:
        return MarkerDelay.STUCK
    began = view.memory.transactions.began_us
    return MarkerDelay.FIRST_OBSERVATION if decided_since_us == began else MarkerDelay.BEING_WRITTEN


def decided_since_us(view: View, held: LsoBlocker) -> int | None:
    """Return the time of the round that first observed the blocker as decided; None: it may be open."""
    if held.producer is None:
        return held.first_seen_us
    entry = held.transaction
    seen = None if entry is None else view.memory.transactions.open.get(entry.transactional_id)
    return None if seen is None else seen.state_since_us
