"""What is told of an episode, once: again when it differs, or when it goes on for a day.

An episode asks for more again and again, and is not told while it does. What was told stays
remembered meanwhile, so that the same verdict is no new event when the answers have come.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode, Told
from rules.facts.times import MICROSECOND
from rules.sequence.arrivals import told_arrival

# Since it was told, of a producer that is rejected all the while: a finding expires after a day.
TOLD_AGAIN: Final = timedelta(hours=23)


def with_told(episode: Episode, now_us: int) -> Episode:
    """Return an episode with what this round tells of it, where that is anything new."""
    before = episode.told
    if not episode.is_told:
        return episode
    told = _telling(episode, now_us)
    if before is None:
        return replace(episode, told=told)
    # What was told before arrivals were known is not told again for these alone.
    arrival = None if before.arrival is None else told.arrival
    same = replace(told, told_us=before.told_us, times=before.times, arrival=arrival)
    is_same = same == before
    goes_on = episode.last_seen_us >= before.told_us + TOLD_AGAIN // MICROSECOND
    return episode if is_same and not goes_on else replace(episode, told=told)


def _telling(episode: Episode, now_us: int) -> Told:
    said = episode.verdict
    return Told(
        class_=said.class_,
        phase=said.phase,
        lost_from=said.lost_from,
        lost_to=said.lost_to,
        is_resent=episode.is_resent,
        told_us=now_us,
        times=1 if episode.told is None else episode.told.times + 1,
        arrival=told_arrival(episode),
    )
