"""What is told of an episode, once: again when it differs, or when it goes on for a day.

An episode asks for more again and again, and is not told while it does. What was told stays
remembered meanwhile, so that the same verdict is no new event when the answers have come.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode, ReportedVerdict
from rules.facts.times import MICROSECOND
from rules.sequence.arrivals import arrival_evidence

# Since it was told, of a producer that is rejected all the while: a finding expires after a day.
REPORTED_AGAIN: Final = timedelta(hours=23)


def with_report(episode: Episode, now_us: int) -> Episode:
    """Return an episode with what this round tells of it, where that is anything new."""
    before = episode.reported
    if not episode.is_reported:
        return episode
    told = _telling(episode, now_us)
    if before is None:
        return replace(episode, reported=told)
    # What was told before arrivals were known is not told again for these alone.
    arrival = None if before.arrival is None else told.arrival
    same = replace(told, reported_us=before.reported_us, times=before.times, arrival=arrival)
    is_same = same == before
    goes_on = episode.last_seen_us >= before.reported_us + REPORTED_AGAIN // MICROSECOND
    return episode if is_same and not goes_on else replace(episode, reported=told)


def _telling(episode: Episode, now_us: int) -> ReportedVerdict:
    said = episode.verdict
    return ReportedVerdict(
        class_=said.class_,
        phase=said.phase,
        lost_from=said.lost_from,
        lost_to=said.lost_to,
        is_resent=episode.is_resent,
        reported_us=now_us,
        times=1 if episode.reported is None else episode.reported.times + 1,
        arrival=arrival_evidence(episode),
    )
