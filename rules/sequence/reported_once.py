"""Reports an episode once, and again when its verdict differs or it lasts for a day.

An episode is not reported while it queries the leader. Its last report stays remembered meanwhile, so
that the same verdict is no new event when the answers have come.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.episodes import Episode, ReportedVerdict
from rules.facts.times import MICROSECOND
from rules.sequence.arrivals import arrival_evidence
from rules.sequence.transaction_outcome import is_news, outcome_of

# Since the last report, for a producer that is still rejected: a finding expires after a day.
REPORTED_AGAIN: Final = timedelta(hours=23)


def with_report(episode: Episode, now_us: int) -> Episode:
    """Return an episode with its report of this round, where that is new."""
    before = episode.reported
    if not episode.is_reported:
        return episode
    reported = _make_report(episode, now_us)
    if before is None:
        return replace(episode, reported=reported)
    # A report made before arrivals were stored is not repeated for the arrival alone.
    arrival = None if before.arrival is None else reported.arrival
    if not is_news(before.outcome, reported.outcome):
        reported = replace(reported, outcome=before.outcome)
    same = replace(reported, reported_us=before.reported_us, times=before.times, arrival=arrival)
    is_same = same == before
    goes_on = episode.last_seen_us >= before.reported_us + REPORTED_AGAIN // MICROSECOND
    return episode if is_same and not goes_on else replace(episode, reported=reported)


def _make_report(episode: Episode, now_us: int) -> ReportedVerdict:
    verdict = episode.verdict
    return ReportedVerdict(
        class_=verdict.class_,
        phase=verdict.phase,
        lost_from=verdict.lost_from,
        lost_to=verdict.lost_to,
        is_resent=episode.is_resent,
        reported_us=now_us,
        times=1 if episode.reported is None else episode.reported.times + 1,
        arrival=arrival_evidence(episode),
        outcome=outcome_of(episode),
    )
