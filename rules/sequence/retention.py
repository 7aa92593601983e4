"""Limits the kept episodes: ended ones are kept for a day, and of too many the most important.

Episodes that are dropped before they were reported are counted: the verdict is UNKNOWN then, not OK.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.column import replace_fields
from rules.facts.episodes import Episode, EpisodeKey, SequenceMemory
from rules.facts.sequence_verdicts import SequenceClass
from rules.facts.times import MICROSECOND
from rules.sequence.reported_once import with_report
from rules.sequence.transaction_outcome import without_open_transactions

ENDED_KEPT: Final = timedelta(hours=24)
MAX_ENDED: Final = 1000
MAX_OPEN: Final = 1000
MAX_QUERYING: Final = 100  # episodes of one round


def retire_episodes(
    memory: SequenceMemory, over: list[Episode], remaining: list[Episode], now_us: int
) -> SequenceMemory:
    """End the episodes that are over, and let the newest of the others query the leader."""
    if len(remaining) > MAX_OPEN:
        remaining.sort(
            key=lambda episode: (
                not episode.verdict.is_confirmed,
                _weight(episode),
                episode.last_seen_us,
            )
        )
        over, remaining = [*over, *remaining[:-MAX_OPEN]], remaining[-MAX_OPEN:]
    oldest = now_us - ENDED_KEPT // MICROSECOND
    before = tuple(episode for episode in memory.ended if (episode.ended_us or now_us) > oldest)
    ended = (*before, *(_end_episode(episode, now_us) for episode in over))
    retained = _retain_important(ended)
    ids = {episode.id for episode in retained}
    reported_before = {episode.id: episode.reported for episode in over}
    unreported = sum(
        episode.id not in ids and episode.reported is not reported_before[episode.id]
        for episode in ended[len(before) :]
    )
    by_key = _limit_queries(remaining)
    return replace(
        memory,
        open={key: with_report(episode, now_us) for key, episode in by_key.items()},
        ended=retained,
        unreported=unreported + (memory.unreported if (memory.unreported_us or 0) > oldest else 0),
        unreported_us=now_us if unreported else memory.unreported_us,
    )


def _retain_important(ended: tuple[Episode, ...]) -> tuple[Episode, ...]:
    """Return at most `MAX_ENDED` episodes: harmless ones are dropped first, and of those the oldest."""
    if len(ended) <= MAX_ENDED:
        return ended
    order = sorted(range(len(ended)), key=lambda place: _weight(ended[place]))
    return tuple(ended[place] for place in sorted(order[-MAX_ENDED:]))


def _weight(episode: Episode) -> int:
    """Return the importance of an episode: 2 for a proven loss, 0 for another proof, else 1."""
    if not episode.verdict.is_confirmed:
        return 1
    return 2 if episode.verdict.class_ is SequenceClass.LOSS else 0


def _end_episode(episode: Episode, now_us: int) -> Episode:
    """Return an episode as ended; one not proven harmless by now becomes UNDETERMINED.

    So does a suspected loss that was dropped before its investigation ended.
    """
    verdict = episode.verdict
    is_cut_short = verdict.class_ is SequenceClass.LOSS and episode.is_investigated
    is_open = verdict.class_ is SequenceClass.REORDERING or is_cut_short
    if is_open and not verdict.is_confirmed:
        verdict = replace(verdict, class_=SequenceClass.UNDETERMINED, at_most_records=None)
    ended = replace(
        without_open_transactions(episode),
        verdict=verdict,
        ended_us=now_us,
        is_querying=False,
        is_waiting=False,
        is_investigated=False,
    )
    return with_report(ended, now_us)


def _limit_queries(episodes: Iterable[Episode]) -> dict[EpisodeKey, Episode]:
    """Let the newest of many episodes query the leader; the others wait."""
    by_key = {episode.key: episode for episode in episodes}
    querying = sorted(
        (episode for episode in by_key.values() if episode.is_querying),
        key=lambda episode: -episode.last_seen_us,
    )
    for waiting in querying[MAX_QUERYING:]:
        queries, total = waiting.queries - 1, waiting.total_queries - 1
        by_key[waiting.key] = replace_fields(
            waiting, is_querying=False, is_waiting=True, queries=queries, total_queries=total
        )
    return by_key
