"""Advances the fencing episodes by one round: new evidence, the class, what is over, what is reported.

A cluster on which nothing is fenced has none, and this costs it nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.column import replace_fields
from rules.facts.fencing import (
    FencingClass,
    FencingEpisode,
    FencingMemory,
    ReportedFencing,
)
from rules.facts.times import MICROSECOND
from rules.fencing.classify import classify, count_cuts
from rules.fencing.counted import ZOMBIE_WITHIN, attribute, list_rises
from rules.fencing.gathering import gather
from rules.question import TransactionsQuestion
from rules.view import View

# What is only a handover may still become a zombie for so long; later requests open a new episode.
ENDS_AFTER: Final = ZOMBIE_WITHIN
ENDED_KEPT: Final = timedelta(hours=24)
MAX_OPEN: Final = 1000
MAX_ENDED: Final = 1000
GOES_ON: Final = (FencingClass.ZOMBIE, FencingClass.INSTANCES_FIGHTING)
REPEATED_AFTER: Final = timedelta(minutes=10)  # what goes on is reported again
OWNERS_ASKED: Final = timedelta(minutes=2)
MAX_OWNERS: Final = 100  # producers in one question
# The most important ones last.
_WEIGHT: Final = (
    FencingClass.LATE_BATCH,
    FencingClass.HANDOVER,
    FencingClass.UNDETERMINED,
    FencingClass.COORDINATOR_TIMEOUT,
    FencingClass.ZOMBIE,
    FencingClass.INSTANCES_FIGHTING,
)


def with_fencing(view: View) -> View:
    """Return a view whose memory includes this round's fencing episodes."""
    return replace(view, memory=replace(view.memory, fencing=advance_fencing(view)))


def advance_fencing(view: View) -> FencingMemory:
    """Return the memory of fencing one round later; `view.memory` holds that of the previous one."""
    before = view.memory.fencing
    gathered = gather(view.snapshot, before)
    attribute(gathered, before.waiting)
    rises, judged = list_rises(view.snapshot.scrapes, before)
    now = gathered.now_us
    for key in gathered.touched & gathered.open.keys():
        episode = gathered.open[key]
        verdict = classify(episode)
        if verdict != episode.verdict:
            episode = replace_fields(episode, verdict=verdict)
        gathered.open[key] = _report(episode, now)
    memory = replace(before, aborts=gathered.aborts, counted_us=judged, waiting=rises)
    if not gathered.open and not before.ended:
        return replace(memory, open={})
    return _retire(memory, gathered.open.values(), now)


def _report(episode: FencingEpisode, now_us: int) -> FencingEpisode:
    """Note that an episode is reported in this round: another class, or more of the same."""
    before = episode.reported
    if before is not None and not _has_more(episode, before, now_us):
        return episode
    reported = ReportedFencing(
        class_=episode.verdict.class_,
        cuts=count_cuts(episode) or 0,
        rejections=episode.rejections,
        reported_us=now_us,
    )
    return replace_fields(episode, reported=reported)


def _has_more(episode: FencingEpisode, before: ReportedFencing, now_us: int) -> bool:
    """Whether an episode has more than was reported: each cut, and now and then what goes on."""
    if before.class_ is not episode.verdict.class_:
        return True
    if before.class_ in GOES_ON:
        is_due = now_us - before.reported_us >= REPEATED_AFTER // MICROSECOND
        return is_due and episode.rejections > before.rejections
    return (count_cuts(episode) or 0) > before.cuts


def _retire(
    memory: FencingMemory, episodes: Iterable[FencingEpisode], now_us: int
) -> FencingMemory:
    """End what is over, and limit what is kept."""
    ends = now_us - ENDS_AFTER // MICROSECOND
    remaining = [each for each in episodes if each.last_seen_us > ends]
    over = [each for each in episodes if each.last_seen_us <= ends]
    if len(remaining) > MAX_OPEN:
        remaining.sort(key=_importance)
        over, remaining = [*over, *remaining[:-MAX_OPEN]], remaining[-MAX_OPEN:]
    oldest = now_us - ENDED_KEPT // MICROSECOND
    ended = [each for each in memory.ended if (each.ended_us or now_us) > oldest]
    ended += [replace_fields(each, ended_us=now_us) for each in over if _is_kept(each)]
    retained = ended
    if len(ended) > MAX_ENDED:
        places = sorted(range(len(ended)), key=lambda place: _importance(ended[place]))
        retained = [ended[place] for place in sorted(places[-MAX_ENDED:])]
    return replace(
        memory,
        open={each.key: each for each in remaining},
        ended=tuple(retained),
        dropped=memory.dropped + len(ended) - len(retained),
    )


def _is_kept(episode: FencingEpisode) -> bool:
    """Whether an episode is of use when it is over: a restart that cut nothing is not."""
    is_restart = episode.verdict.class_ is FencingClass.HANDOVER
    return not is_restart or bool(count_cuts(episode))


def _importance(episode: FencingEpisode) -> tuple[int, int]:
    return _WEIGHT.index(episode.verdict.class_), episode.last_seen_us


def owner_questions(view: View) -> tuple[TransactionsQuestion, ...]:
    """Return the question whose rejected producers have transactional ids; none on a quiet cluster."""
    fencing = view.memory.fencing
    if not fencing.open:
        return ()
    now = view.memory.taken_us
    unknown = frozenset(
        episode.producer_id
        for episode in fencing.open.values()
        if episode.transactional_id is None
        and episode.producer_id is not None
        and episode.is_idempotent is None
        and now - episode.last_seen_us < OWNERS_ASKED // MICROSECOND
    )
    return (TransactionsQuestion(frozenset(sorted(unknown)[:MAX_OWNERS])),) if unknown else ()
