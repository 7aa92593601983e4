"""Carries episodes on by one round: new lines, answers, proofs, the verdict, and what to ask next.

It comes after the memory of offsets was advanced, because it needs what leader changes left.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.changed import changed
from rules.facts.episodes import Episode, SequenceMemory
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import (
    CONTINUITY,
    Arrival,
    Phase,
    SequenceClass,
    SequenceReason,
)
from rules.facts.times import MICROSECOND
from rules.sequence.answers import proven, with_answers
from rules.sequence.arrivals import INVESTIGATED
from rules.sequence.changes import advance_changes
from rules.sequence.classify import (
    MAX_TOTAL_QUERIES,
    QUERIES_AT_ONCE,
    QUERIES_IN_A_ROW,
    Decided,
    is_final,
    is_patient,
    leading,
)
from rules.sequence.episode_context import DELIVERY_TIMEOUT, EpisodeContext, OnlyFailed
from rules.sequence.episode_contexts import EpisodeContexts
from rules.sequence.gathering import gathered
from rules.sequence.retention import put_aside
from rules.view import View

ENDS_AFTER: Final = timedelta(minutes=5)  # since the last rejection; a client gave up long before
LOSS_ENDS_AFTER: Final = timedelta(hours=1)  # an old leader that comes back tells the exact range
LOSS_SCANNED_EVERY: Final = timedelta(seconds=10)  # so often, while its client may try again
SCANNED_LATE: Final = timedelta(
    seconds=60
)  # since that time is over, until an observation has come to the end
# What a client that gave up batches of its own may resembles: nothing acknowledged is missing.
CLIENTS: Final = (SequenceClass.REORDERING, SequenceClass.CLIENT_FAILURE)
MAY_BE_THE_CLIENTS: Final = (*CONTINUITY, SequenceReason.CLEAN_CHANGES)


def nobody_tells(*_: object) -> None:
    """Answer where no metrics of clients are read."""


def with_sequences(view: View, only_failed: OnlyFailed = nobody_tells) -> View:
    """Return a view whose memory holds this round of the sequences too."""
    sequences = advance_sequences(view, only_failed)
    return replace(view, memory=replace(view.memory, sequences=sequences))


def advance_sequences(view: View, only_failed: OnlyFailed = nobody_tells) -> SequenceMemory:
    """Return the memory of sequences one round later; `view.memory` holds that of the round before.

    `only_failed` names the one producer of a topic whose records failed within a time, if it was
    exactly one.
    """
    before = view.memory.sequences
    changes, leaderships = advance_changes(view, before)
    found = gathered(view.snapshot, before)
    known = replace(before, open={}, changes=changes, leaderships=leaderships)
    if not (found.open or found.replaced or before.ended or before.unreported):
        return known
    over, left = list(found.replaced), list[Episode]()
    contexts = EpisodeContexts.of(view, leaderships)
    for episode in found.open.values():
        context = contexts.of_episode(episode)
        judged = _judged(with_answers(episode, contexts, context, changes), context, only_failed)
        (over if _is_over(judged, context) else left).append(judged)
    return put_aside(known, over, left, contexts.now_us)


def _judged(episode: Episode, context: EpisodeContext, only_failed: OnlyFailed) -> Episode:
    """Return an episode with what is said of it now, and whether it asks for more."""
    rejections = proven(episode, context)
    if rejections is not episode.rejections:
        episode = changed(episode, rejections=rejections)
    if context.error is SequenceReason.TOPIC_RECREATED and episode.verdict.is_confirmed:
        return replace(  # nothing is left to refute it
            episode, is_querying=False, is_waiting=False, is_investigated=False
        )
    asked, in_all = _asked(episode, context)
    if (asked, in_all) != (episode.queries, episode.total_queries):
        episode = changed(episode, asked=asked, total_queries=in_all)
    decided = _still_said(episode, rejections, leading(episode, context, only_failed))
    place = rejections.index(decided.rejection)
    is_querying = _wants_more(episode, decided, context)
    is_open = not decided.verdict.is_confirmed
    return changed(
        episode,
        verdict=decided.verdict,
        leading=place,
        is_querying=is_querying,
        is_waiting=False,
        is_investigated=is_open and not is_final(episode, decided.rejection, context),
        asked=asked + is_querying,
        total_queries=in_all + is_querying,
    )


def _asked(episode: Episode, context: EpisodeContext) -> tuple[int, int]:
    """Return how often it was asked: not where nobody answered, and anew where all is settled."""
    is_silence = context.is_silent or context.scan_error is SequenceReason.SCAN_FAILED
    unanswered = int(episode.is_querying and is_silence)
    is_settled = all(rejection.is_settled for rejection in episode.rejections)
    return episode.queries - unanswered, 0 if is_settled else episode.total_queries - unanswered


def _still_said(episode: Episode, rejections: tuple[Rejection, ...], decided: Decided) -> Decided:
    """Keep a loss that was confirmed until a proof refutes it; no later rejection puts it in doubt."""
    before = episode.verdict
    if before.class_ is not SequenceClass.LOSS or not before.is_confirmed:
        return _still_failed(episode, decided)
    shown = next(
        (rejection for rejection in rejections if rejection.key == episode.shown.key),
        decided.rejection,
    )
    if decided.verdict.is_confirmed or shown.proof is not None:
        return decided
    return Decided(rejection=shown, verdict=before)


def _still_failed(episode: Episode, decided: Decided) -> Decided:
    """Keep that a client gave up batches, once told: the metrics that proved it are soon forgotten.

    What is only reordered later is less than that.
    """
    told, said = episode.reported, decided.verdict
    if told is None or told.class_ is not SequenceClass.CLIENT_FAILURE or not told.is_confirmed:
        return decided
    if told.arrival is Arrival.NOT_ARRIVED:
        return decided  # that is remembered of the rejection itself
    if said.class_ not in CLIENTS or said.reason not in MAY_BE_THE_CLIENTS:
        return decided
    class_, reason = SequenceClass.CLIENT_FAILURE, SequenceReason.RECORD_ERROR
    verdict = replace(said, class_=class_, phase=Phase.CONFIRMED, reason=reason)
    return replace(decided, verdict=verdict)


def _wants_more(episode: Episode, decided: Decided, context: EpisodeContext) -> bool:
    """Whether the next round should observation: at once, and again when the client has given up."""
    if context.error is not None or episode.total_queries >= MAX_TOTAL_QUERIES:
        return False
    if decided.verdict.is_confirmed:
        if decided.verdict.class_ is SequenceClass.LOSS:
            return _may_heal(episode, context)
        return _may_be_resent(episode, decided) or _may_arrive(episode, context)
    if is_patient(episode, context):
        return episode.queries < QUERIES_AT_ONCE
    is_in_time = context.now_us < decided.rejection.seen_us + INVESTIGATED // MICROSECOND
    is_due = is_in_time and episode.queries < QUERIES_IN_A_ROW
    return is_due or _comes_to_the_end(episode, decided, context)


def _may_arrive(episode: Episode, context: EpisodeContext) -> bool:
    """Whether to observation if a batch comes after all before which nothing acknowledged is missing."""
    awaited = [
        rejection for rejection in episode.rejections if rejection.arrival is Arrival.AWAITED
    ]
    if not any(one.proof is not None for one in awaited):
        return False
    if is_patient(episode, context):
        return episode.queries < QUERIES_AT_ONCE
    return _is_late_scan_open(episode, context)


def _may_heal(episode: Episode, context: EpisodeContext) -> bool:
    """Whether to observation if a client sends after all what was proven to be lost, or had never arrived.

    What is gone is the partition's; of this producer a batch may only have been overtaken.
    """
    if is_patient(episode, context):
        observed = episode.batches_scanned_us
        return observed is None or context.now_us >= observed + LOSS_SCANNED_EVERY // MICROSECOND
    return _is_late_scan_open(episode, context)


def _is_late_scan_open(episode: Episode, context: EpisodeContext) -> bool:
    """Whether the log is still to be scanned to its end after a client gave up."""
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    is_soon = context.now_us < late + SCANNED_LATE // MICROSECOND
    return is_soon and (episode.end_scanned_us or 0) < late


def _may_be_resent(episode: Episode, decided: Decided) -> bool:
    """Whether to observation if a stale batch is sent once more under a new epoch."""
    is_stale = decided.verdict.class_ is SequenceClass.STALE_RETRY
    is_known = episode.is_resent_after(decided.rejection)
    return is_stale and not is_known and episode.queries < QUERIES_AT_ONCE


def _comes_to_the_end(episode: Episode, decided: Decided, context: EpisodeContext) -> bool:
    """Whether an observation goes on in which it has to turn out whether anything came."""
    is_open = decided.verdict.reason is SequenceReason.UNCLEAN_CHANGE
    is_answered = episode.batches_scanned_us == context.now_us
    return is_open and is_answered and episode.end_scanned_us != context.now_us


def _is_over(episode: Episode, context: EpisodeContext) -> bool:
    """Whether nothing was rejected for a while, and nothing more is to be found out."""
    is_loss = episode.verdict.class_ is SequenceClass.LOSS
    waits = LOSS_ENDS_AFTER if is_loss else ENDS_AFTER
    if context.now_us < episode.last_seen_us + waits // MICROSECOND:
        return False
    return episode.verdict.is_confirmed or is_final(episode, episode.shown, context)
