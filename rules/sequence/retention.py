"""What is kept of episodes: those that are over for a day, and of too many those that matter most.

What is dropped before anybody was told of it is counted, so that nobody takes it for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.changed import changed
from rules.facts.episodes import Episode, EpisodeKey, SequenceMemory
from rules.facts.sequence_verdicts import SequenceClass
from rules.facts.times import MICROSECOND
from rules.sequence.reported_once import with_report

ENDED_KEPT: Final = timedelta(hours=24)
MAX_ENDED: Final = 1000
MAX_OPEN: Final = 1000
MAX_QUERYING: Final = 100  # episodes of one round


def put_aside(
    known: SequenceMemory, over: list[Episode], left: list[Episode], now_us: int
) -> SequenceMemory:
    """Put aside the episodes that are over, and let the newest of the others ask."""
    if len(left) > MAX_OPEN:
        left.sort(key=lambda one: (_is_open(one), _weight(one), one.last_seen_us))
        over, left = [*over, *left[:-MAX_OPEN]], left[-MAX_OPEN:]
    oldest = now_us - ENDED_KEPT // MICROSECOND
    before = tuple(one for one in known.ended if (one.ended_us or now_us) > oldest)
    ended = (*before, *(_ended(one, now_us) for one in over))
    kept = _that_matter(ended)
    ids = {one.id for one in kept}
    reported_before = {one.id: one.reported for one in over}
    unreported = sum(
        one.id not in ids and one.reported is not reported_before[one.id]
        for one in ended[len(before) :]
    )
    asking = _taking_turns(left)
    return replace(
        known,
        open={key: with_report(one, now_us) for key, one in asking.items()},
        ended=kept,
        unreported=unreported + (known.unreported if (known.unreported_us or 0) > oldest else 0),
        unreported_us=now_us if unreported else known.unreported_us,
    )


def _that_matter(ended: tuple[Episode, ...]) -> tuple[Episode, ...]:
    """Return at most so many as are kept: harmless ones go first, and of those the oldest."""
    if len(ended) <= MAX_ENDED:
        return ended
    order = sorted(range(len(ended)), key=lambda place: _weight(ended[place]))
    return tuple(ended[place] for place in sorted(order[-MAX_ENDED:]))


def _weight(episode: Episode) -> int:
    """Return how much an episode matters: a loss most, what is proven harmless least."""
    if not episode.verdict.is_confirmed:
        return 1
    return 2 if episode.verdict.class_ is SequenceClass.LOSS else 0


def _is_open(episode: Episode) -> bool:
    """Whether looking further may change what is said of it."""
    return not episode.verdict.is_confirmed


def _ended(episode: Episode, now_us: int) -> Episode:
    """Return an episode that is over; what was not proven harmless by now is not known to be.

    Neither is what had to go before it was investigated.
    """
    said = episode.verdict
    is_cut_short = said.class_ is SequenceClass.LOSS and episode.is_investigated
    is_open = said.class_ is SequenceClass.REORDERING or is_cut_short
    if is_open and not said.is_confirmed:
        said = replace(said, class_=SequenceClass.UNDETERMINED, at_most_records=None)
    ended = replace(
        episode,
        verdict=said,
        ended_us=now_us,
        is_querying=False,
        is_waiting=False,
        is_investigated=False,
    )
    return with_report(ended, now_us)


def _taking_turns(episodes: Iterable[Episode]) -> dict[EpisodeKey, Episode]:
    """Let the newest of many episodes ask; the others wait."""
    found = {episode.key: episode for episode in episodes}
    asking = sorted(
        (one for one in found.values() if one.is_querying), key=lambda one: -one.last_seen_us
    )
    for one in asking[MAX_QUERYING:]:
        asked, in_all = one.queries - 1, one.total_queries - 1
        found[one.key] = changed(
            one, is_querying=False, is_waiting=True, asked=asked, total_queries=in_all
        )
    return found
