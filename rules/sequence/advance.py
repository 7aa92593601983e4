"""Advances episodes by one round: new log lines, query answers, proofs, the verdict, the next queries.

Runs after the memory of offsets has advanced, because it uses the outcome of leader changes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.column import replace_fields
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
from rules.sequence.answers import prove_rejections, with_answers
from rules.sequence.arrivals import INVESTIGATED
from rules.sequence.changes import advance_changes
from rules.sequence.classify import (
    MAX_TOTAL_QUERIES,
    QUERIES_AT_ONCE,
    QUERIES_IN_A_ROW,
    Decision,
    decide_episode,
    is_final,
    is_patient,
)
from rules.sequence.episode_context import (
    DELIVERY_TIMEOUT,
    EpisodeContext,
    EpisodeContexts,
    OnlyFailed,
)
from rules.sequence.gathering import gather_episodes
from rules.sequence.producer_transactions import ProducerTransactions
from rules.sequence.retention import retire_episodes
from rules.sequence.transaction_observations import with_transactions
from rules.sequence.transaction_outcome import awaited_rejections, is_any_open, is_end_unseen
from rules.view import View

ENDS_AFTER: Final = timedelta(minutes=5)  # since the last rejection; a client gave up long before
LOSS_ENDS_AFTER: Final = timedelta(hours=1)  # a former leader that returns shows the exact range
OPEN_ENDS_AFTER: Final = timedelta(hours=1)  # while its transaction is open: it may yet fail
LOSS_SCANNED_EVERY: Final = timedelta(seconds=10)  # while its client may still retry
# After the delivery timeout, how long a scan may still be made up to the end of the log.
SCANNED_LATE: Final = timedelta(seconds=60)
# Verdicts under which a client may have given up batches of its own: nothing acknowledged is missing.
CLIENTS: Final = (SequenceClass.REORDERING, SequenceClass.CLIENT_FAILURE)
MAY_BE_THE_CLIENTS: Final = (*CONTINUITY, SequenceReason.CLEAN_CHANGES)


def ignore_client_metrics(*_: object) -> None:
    """Return None: no client metrics are read."""


def with_sequences(view: View, only_failed: OnlyFailed = ignore_client_metrics) -> View:
    """Return a view whose memory includes this round's sequence episodes."""
    sequences = advance_sequences(view, only_failed)
    return replace(view, memory=replace(view.memory, sequences=sequences))


def advance_sequences(
    view: View, only_failed: OnlyFailed = ignore_client_metrics
) -> SequenceMemory:
    """Return the memory of sequences one round later; `view.memory` holds the one of the previous round.

    `only_failed` names the one producer of a topic that had records fail in a time range, if it was
    exactly one.
    """
    before = view.memory.sequences
    changes, leaderships = advance_changes(view, before)
    episodes = gather_episodes(view.snapshot, before)
    memory = replace(before, open={}, changes=changes, leaderships=leaderships)
    if not (episodes.open or episodes.replaced or before.ended or before.unreported):
        return memory
    over, remaining = list(episodes.replaced), list[Episode]()
    contexts = EpisodeContexts.of(view, leaderships)
    facts = ProducerTransactions.of(view.snapshot, episodes.open.values())
    for episode in episodes.open.values():
        context = contexts.of_episode(episode)
        answered = with_answers(episode, contexts, context, changes)
        answered = with_transactions(answered, facts, contexts, context)
        judged = _judge(answered, context, only_failed)
        (over if _is_over(judged, context) else remaining).append(judged)
    return retire_episodes(memory, over, remaining, contexts.now_us)


def _judge(episode: Episode, context: EpisodeContext, only_failed: OnlyFailed) -> Episode:
    """Return an episode with its present verdict, and whether it queries the leader again."""
    rejections = prove_rejections(episode, context)
    if rejections is not episode.rejections:
        episode = replace_fields(episode, rejections=rejections)
    if context.error is SequenceReason.TOPIC_RECREATED and episode.verdict.is_confirmed:
        return replace(  # nothing is left to refute it
            episode, is_querying=False, is_waiting=False, is_investigated=False
        )
    queries, total = _count_queries(episode, context)
    if (queries, total) != (episode.queries, episode.total_queries):
        episode = replace_fields(episode, queries=queries, total_queries=total)
    decision = _keep_confirmed_loss(
        episode, rejections, decide_episode(episode, context, only_failed)
    )
    place = rejections.index(decision.rejection)
    is_querying = _should_query(episode, decision, context)
    is_open = not decision.verdict.is_confirmed
    return replace_fields(
        episode,
        verdict=decision.verdict,
        leading=place,
        is_querying=is_querying,
        is_waiting=False,
        is_investigated=is_open and not is_final(episode, decision.rejection, context),
        queries=queries + is_querying,
        total_queries=total + is_querying,
    )


def _count_queries(episode: Episode, context: EpisodeContext) -> tuple[int, int]:
    """Return how many queries count, recently and in total.

    An unanswered query does not count; the total starts again at 0 once all rejections are settled.
    """
    is_silence = context.is_silent or context.scan_error is SequenceReason.SCAN_FAILED
    unanswered = int(episode.is_querying and is_silence)
    is_settled = all(rejection.is_settled for rejection in episode.rejections)
    return episode.queries - unanswered, 0 if is_settled else episode.total_queries - unanswered


def _keep_confirmed_loss(
    episode: Episode, rejections: tuple[Rejection, ...], decision: Decision
) -> Decision:
    """Keep a confirmed loss until a proof refutes it, whatever is rejected later."""
    before = episode.verdict
    if before.class_ is not SequenceClass.LOSS or not before.is_confirmed:
        return _keep_client_failure(episode, decision)
    shown = next(
        (rejection for rejection in rejections if rejection.key == episode.shown.key),
        decision.rejection,
    )
    if decision.verdict.is_confirmed or shown.proof is not None:
        return decision
    return Decision(rejection=shown, verdict=before)


def _keep_client_failure(episode: Episode, decision: Decision) -> Decision:
    """Keep a reported client failure: the metrics that proved it are soon forgotten.

    A later reordering does not replace it.
    """
    reported, verdict = episode.reported, decision.verdict
    if (
        reported is None
        or reported.class_ is not SequenceClass.CLIENT_FAILURE
        or not reported.is_confirmed
    ):
        return decision
    if reported.arrival is Arrival.NOT_ARRIVED:
        return decision  # the rejection itself remembers that
    if verdict.class_ not in CLIENTS or verdict.reason not in MAY_BE_THE_CLIENTS:
        return decision
    class_, reason = SequenceClass.CLIENT_FAILURE, SequenceReason.RECORD_ERROR
    failed = replace(verdict, class_=class_, phase=Phase.CONFIRMED, reason=reason)
    return replace(decision, verdict=failed)


def _should_query(episode: Episode, decision: Decision, context: EpisodeContext) -> bool:
    """Whether the next round should query the leader: at once, and again once the client has given up."""
    if context.error is not None or episode.total_queries >= MAX_TOTAL_QUERIES:
        return False
    if decision.verdict.is_confirmed:
        if decision.verdict.class_ is SequenceClass.LOSS:
            return _may_heal(episode, context)
        is_sought = _may_be_resent(episode, decision) or _may_arrive(episode, context)
        return is_sought or _may_find_end(episode)
    if is_patient(episode, context):
        return episode.queries < QUERIES_AT_ONCE
    is_in_time = context.now_us < decision.rejection.seen_us + INVESTIGATED // MICROSECOND
    is_due = is_in_time and episode.queries < QUERIES_IN_A_ROW
    return is_due or _should_finish_scan(episode, decision, context)


def _may_arrive(episode: Episode, context: EpisodeContext) -> bool:
    """Whether to scan for a rejected batch before which nothing acknowledged is missing."""
    awaited = [
        rejection for rejection in episode.rejections if rejection.arrival is Arrival.AWAITED
    ]
    if not any(rejection.proof is not None for rejection in awaited):
        return False
    if is_patient(episode, context):
        return episode.queries < QUERIES_AT_ONCE
    return _is_late_scan_open(episode, context)


def _may_find_end(episode: Episode) -> bool:
    """Whether to scan for the marker of the rejected batch's transaction, longer if it ended unseen."""
    if not episode.transaction.is_transactional or not awaited_rejections(episode):
        return False
    most = QUERIES_IN_A_ROW if is_end_unseen(episode) else QUERIES_AT_ONCE
    return episode.queries < most


def _may_heal(episode: Episode, context: EpisodeContext) -> bool:
    """Whether to scan for records that were proven lost, or never arrived, and may be sent again.

    The lost range is the partition's; this producer's batch may only have been overtaken.
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


def _may_be_resent(episode: Episode, decision: Decision) -> bool:
    """Whether to scan for a stale batch that is sent again under a new producer epoch."""
    is_stale = decision.verdict.class_ is SequenceClass.STALE_RETRY
    is_known = episode.is_resent_after(decision.rejection)
    return is_stale and not is_known and episode.queries < QUERIES_AT_ONCE


def _should_finish_scan(episode: Episode, decision: Decision, context: EpisodeContext) -> bool:
    """Whether a scan has begun that must reach the end of the log to decide the episode."""
    is_open = decision.verdict.reason is SequenceReason.UNCLEAN_CHANGE
    is_answered = episode.batches_scanned_us == context.now_us
    return is_open and is_answered and episode.end_scanned_us != context.now_us


def _is_over(episode: Episode, context: EpisodeContext) -> bool:
    """Whether nothing was rejected for a while, and no further evidence is expected."""
    is_loss = episode.verdict.class_ is SequenceClass.LOSS
    waits = LOSS_ENDS_AFTER if is_loss else ENDS_AFTER
    waits = OPEN_ENDS_AFTER if is_any_open(episode) else waits
    if context.now_us < episode.last_seen_us + waits // MICROSECOND:
        return False
    return episode.verdict.is_confirmed or is_final(episode, episode.shown, context)
