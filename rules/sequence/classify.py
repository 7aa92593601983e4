"""Classifies an episode: by proofs first, then by leader changes, then by the numbers.

Every rejection is judged by itself, and the worst one decides the episode: a loss and a later
reordering of the same producer are a loss. Only what is proven is confirmed (docs/sequence.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from rules.facts.broker_log import SequenceForm
from rules.facts.episodes import ChangeKind, Episode, LeaderChange
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import (
    BY_LINES,
    CONTINUITY,
    UNREAD,
    Arrival,
    Phase,
    SequenceClass,
    SequenceReason,
    SequenceVerdict,
)
from rules.facts.times import EPOCH, MICROSECOND
from rules.sequence.arrivals import INVESTIGATED, was_scanned_late
from rules.sequence.between import appended_in, lies_between, may_lie_between
from rules.sequence.episode_context import (
    DELIVERY_TIMEOUT,
    EpisodeContext,
    OnlyFailed,
)
from rules.sequence.numbers import RANK, REPEATS, Suspicion, gap_of, is_behind, suspicions_of

QUERIES_AT_ONCE: Final = 3  # rounds: two decide, and one may fail
QUERIES_IN_A_ROW: Final = 6  # rounds: the rest follow once the client has given up
MAX_TOTAL_QUERIES: Final = 40  # rounds, for a producer that is rejected again and again
# How long before and after a rejection a producer's failed records are attributed to it: the client
# gives records up after its delivery timeout, and its metrics show it at the next scrape.
FAILED_WITHIN: Final = DELIVERY_TIMEOUT + timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One rejection and its verdict."""

    rejection: Rejection
    verdict: SequenceVerdict


def decide_episode(
    episode: Episode, context: EpisodeContext, only_failed: OnlyFailed = lambda *_: None
) -> Decision:
    """Return the verdict on an episode by all evidence, and the rejection that decides it."""
    suspicions = suspicions_of(episode.rejections, episode.largest_batch)
    decisions = [_judge(episode, suspicion, context) for suspicion in suspicions]
    worst = decisions[0] if len(decisions) == 1 else min(decisions, key=_badness)
    if context.is_silent and not worst.verdict.is_confirmed:
        return min(_decide_in_silence(episode, decisions, context), key=_badness)
    if _may_be_client_failure(worst) and _has_failed(episode, only_failed):
        class_, reason = SequenceClass.CLIENT_FAILURE, SequenceReason.RECORD_ERROR
        return Decision(
            rejection=worst.rejection, verdict=_make_verdict(class_, Phase.CONFIRMED, reason)
        )
    return worst


def _decide_in_silence(
    episode: Episode, decisions: list[Decision], context: EpisodeContext
) -> list[Decision]:
    """Return the earlier verdict, and the verdicts on new rejections: there is no other evidence."""
    earlier = [decision for decision in decisions if decision.rejection.seen_us < context.now_us]
    if not earlier:
        return decisions
    keys = [decision.rejection.key for decision in earlier]
    shown = earlier[keys.index(episode.shown.key) if episode.shown.key in keys else 0].rejection
    new = [decision for decision in decisions if decision.rejection.seen_us >= context.now_us]
    verdict = episode.verdict
    if verdict.reason in BY_LINES and context.error is not None:
        verdict = replace(verdict, reason=context.error)
    return [Decision(rejection=shown, verdict=verdict), *new]


def is_patient(episode: Episode, context: EpisodeContext) -> bool:
    """Whether the client may still retry: its delivery timeout since the last rejection is not over."""
    return context.now_us < episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND


def is_final(episode: Episode, rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether no further evidence is expected that could change the verdict on a rejection.

    The wait is limited, also for a producer that is rejected again and again.
    """
    age_us = context.now_us - rejection.seen_us
    if age_us < DELIVERY_TIMEOUT // MICROSECOND:
        return False
    is_exhausted = episode.queries >= QUERIES_IN_A_ROW or episode.total_queries >= MAX_TOTAL_QUERIES
    is_unseen = context.error is not None and not context.is_silent
    return is_unseen or is_exhausted or age_us >= INVESTIGATED // MICROSECOND


def _badness(decision: Decision) -> tuple[int, int, int, int]:
    """Return the sort key: losses first, proven ones before suspected; then open ones; then harmless ones."""
    is_loss, is_sure = decision.verdict.class_ is SequenceClass.LOSS, decision.verdict.is_confirmed
    rank = (0 if is_sure else 1) if is_loss else (3 if is_sure else 2)
    first = decision.rejection.first_us or 0
    return rank, RANK.index(decision.verdict.class_), first, gap_of(decision.rejection) or 0


def _judge(episode: Episode, suspicion: Suspicion, context: EpisodeContext) -> Decision:
    rejection = suspicion.rejection
    if rejection.proof is not None:
        verdict = _judge_proven(episode, rejection, context)
    elif is_behind(rejection):
        verdict = _judge_open(episode, suspicion, context)
    else:
        verdict = (
            _judge_by_changes(episode, rejection, context)
            or _judge_by_state(episode, suspicion, context)
            or _judge_by_clean_changes(episode, suspicion, context)
            or _judge_open(episode, suspicion, context)
        )
    return Decision(rejection=rejection, verdict=verdict)


def _judge_proven(
    episode: Episode, rejection: Rejection, context: EpisodeContext
) -> SequenceVerdict:
    reason = rejection.proof or SequenceReason.FILLED
    if is_behind(rejection):
        return _make_verdict(SequenceClass.STALE_RETRY, Phase.CONFIRMED, reason)
    if reason in CONTINUITY and rejection.form is SequenceForm.NEW_EPOCH:
        return _judge_restart(episode, rejection, reason, context)
    return _judge_order(rejection, reason)


def _judge_order(rejection: Rejection, reason: SequenceReason) -> SequenceVerdict:
    """Return a reordering, or a client failure where the rejected batch never arrived."""
    if rejection.arrival is Arrival.NOT_ARRIVED and reason is not SequenceReason.FILLED:
        not_arrived = SequenceReason.NOT_ARRIVED
        return _make_verdict(SequenceClass.CLIENT_FAILURE, Phase.CONFIRMED, not_arrived)
    return _make_verdict(SequenceClass.REORDERING, Phase.CONFIRMED, reason)


def _judge_restart(
    episode: Episode, rejection: Rejection, reason: SequenceReason, context: EpisodeContext
) -> SequenceVerdict:
    """Distinguish a client whose epochs start above sequence 0 from a reordering at an epoch's start."""
    unfilled = [
        other
        for other in episode.rejections
        if other.form is SequenceForm.NEW_EPOCH
        and other.proof in CONTINUITY
        and other.current_epoch == rejection.current_epoch
    ]
    if len({other.producer_epoch for other in unfilled}) > 1:
        above = SequenceReason.EPOCHS_ABOVE_ZERO
        return _make_verdict(SequenceClass.SEQUENCE_RESTART, Phase.CONFIRMED, above)
    repeats = sum(
        other.count for other in unfilled if other.incoming_sequence == rejection.incoming_sequence
    )
    if repeats < REPEATS:
        return _judge_order(rejection, reason)
    if was_scanned_late(episode):
        above = SequenceReason.EPOCHS_ABOVE_ZERO
        return _make_verdict(SequenceClass.SEQUENCE_RESTART, Phase.CONFIRMED, above)
    phase = Phase.CONFIRMED if is_final(episode, rejection, context) else Phase.SUSPECTED
    return _make_verdict(SequenceClass.REORDERING, phase, reason)


def _was_scanned(episode: Episode, rejection: Rejection) -> bool:
    """Whether the log was scanned around the rejected batch, after it was rejected."""
    observed = episode.batches_scanned_us
    return observed is not None and observed > rejection.seen_us


def _may_be_client_failure(decision: Decision) -> bool:
    """Whether nothing acknowledged is missing, but the missing batches did not arrive."""
    if is_behind(decision.rejection):
        return False
    verdict = decision.verdict
    if verdict.reason in (SequenceReason.CLEAN_CHANGES, SequenceReason.NOT_ARRIVED):
        return True
    return verdict.class_ is SequenceClass.REORDERING and verdict.reason in CONTINUITY


def _has_failed(episode: Episode, only_failed: OnlyFailed) -> bool:
    if episode.name is None:
        return False
    since = EPOCH + episode.first_seen_us * MICROSECOND - FAILED_WITHIN
    until = EPOCH + episode.last_seen_us * MICROSECOND + FAILED_WITHIN
    return only_failed(episode.name.topic, since, until) is not None


def _judge_by_changes(
    episode: Episode, rejection: Rejection, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge by an unclean leader change between the last sequence and the rejection."""
    between = [change for change in episode.changes if lies_between(change, rejection)]
    lost = next((change for change in between if change.kind is ChangeKind.LOST), None)
    if lost is not None:
        if _was_scanned(episode, rejection):
            return _make_loss(Phase.CONFIRMED, SequenceReason.LOSS_PROVEN, rejection, lost)
        return _make_loss(
            Phase.SUSPECTED, _missing_evidence(episode, rejection, context), rejection
        )
    unclean = next((change for change in between if change.kind is ChangeKind.UNCLEAN), None)
    if unclean is not None:
        if was_scanned_late(episode):
            return _make_loss(
                Phase.CONFIRMED, SequenceReason.UNCLEAN_AND_UNHEALED, rejection, unclean
            )
        return _make_loss(Phase.SUSPECTED, SequenceReason.UNCLEAN_CHANGE, rejection)
    if _may_have_changed(episode, rejection, context):
        return _make_loss(Phase.SUSPECTED, SequenceReason.CHANGE_NOT_KNOWN, rejection)
    return None


def _may_have_changed(episode: Episode, rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether an unclean change may lie in between; False for a partition that is not observed."""
    is_unseen = context.error is not None and context.leader_epoch is None
    return not is_unseen and any(may_lie_between(change, rejection) for change in episode.changes)


def _judge_by_clean_changes(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge by the watched leader changes since the last sequence, none of which is known as unclean."""
    appended = appended_in(suspicion.rejection)
    if appended is None or context.leader_epoch is None or appended >= context.leader_epoch:
        return None
    if context.is_change_unreported:
        return _make_suspicion(episode, suspicion, context, SequenceReason.CHANGE_NOT_REPORTED)
    if context.watched_from is None or context.watched_from > appended:
        if suspicion.class_ is SequenceClass.LOSS:
            return _make_loss(Phase.SUSPECTED, SequenceReason.CHANGES_UNSEEN, suspicion.rejection)
        return _make_suspicion(episode, suspicion, context, SequenceReason.CHANGES_UNSEEN)
    if any(change.leader_epoch > appended for change in episode.changes):
        return None  # it is known that they came after the rejection
    is_later = _was_rejected_in(appended, suspicion.rejection, episode)
    is_certain = context.clean_from is not None and context.clean_from <= appended
    return _judge_by_watched_changes(suspicion, is_certain=is_certain, is_later=is_later)


def _judge_by_watched_changes(
    suspicion: Suspicion, *, is_certain: bool, is_later: bool
) -> SequenceVerdict:
    if is_later:  # one leader had the last batch and rejected this one: it lost nothing in between
        changed = SequenceReason.CHANGED_SINCE
        return _make_verdict(SequenceClass.UNDETERMINED, Phase.SUSPECTED, changed)
    if is_certain:
        clean = SequenceReason.CLEAN_CHANGES
        return _make_verdict(SequenceClass.CLIENT_FAILURE, Phase.SUSPECTED, clean)
    seeming = SequenceReason.SEEMINGLY_CLEAN
    if suspicion.class_ is SequenceClass.LOSS:
        return _make_loss(Phase.SUSPECTED, seeming, suspicion.rejection)
    return _make_verdict(SequenceClass.CLIENT_FAILURE, Phase.SUSPECTED, seeming)


def _was_rejected_in(leader_epoch: int, rejection: Rejection, episode: Episode) -> bool:
    """Whether this leader epoch was still current after the line had been read."""
    observation = episode.first_state
    if observation is None or observation.observed_us <= rejection.seen_us:
        return False
    return observation.leader_epoch <= leader_epoch


def _judge_by_state(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge by a leader that has no state of the producer, where nothing arrived since.

    A leader elected uncleanly has no state either, of a producer whose batches it lost entirely.
    """
    observation, rejection = episode.last_state, suspicion.rejection
    if (
        observation is None
        or observation.state is not None
        or observation.observed_us <= rejection.seen_us
    ):
        return None
    if _may_have_lost_all(episode, rejection, context):
        is_reported = appended_in(rejection) is None and suspicion.class_ is SequenceClass.LOSS
        return (
            _make_loss(Phase.SUSPECTED, SequenceReason.SEEMINGLY_CLEAN, rejection)
            if is_reported
            else None
        )
    if not _had_state(episode, rejection):
        return None
    lost = SequenceClass.PRODUCER_STATE_LOST
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    if observation.observed_us >= late and not is_patient(episode, context):
        return _make_verdict(lost, Phase.CONFIRMED, SequenceReason.NO_STATE)
    if is_final(episode, rejection, context):
        return None  # no late answer says whether it still has no state
    return _make_verdict(lost, Phase.SUSPECTED, SequenceReason.HEALING)


def _had_state(episode: Episode, rejection: Rejection) -> bool:
    """Whether a leader ever had a state of the producer: before its first transaction there is none."""
    if rejection.form is not SequenceForm.EXPECTED_ZERO:
        return True
    observation = episode.first_state
    is_remembered = observation is not None and observation.state is not None
    return is_remembered or rejection.before is not None or rejection.marker is not None


def _may_have_lost_all(episode: Episode, rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether the leader changed, not cleanly for certain, since the producer's last batch."""
    appended, clean_from = appended_in(rejection), context.clean_from
    if context.leader_epoch is None:
        return False
    if appended is None:  # what was before the watch is not held against it
        watched = context.watched_from
        is_broken = clean_from is not None and watched is not None and clean_from > watched
        return context.is_change_unreported or is_broken
    if appended >= context.leader_epoch or _was_rejected_in(appended, rejection, episode):
        return False
    return clean_from is None or clean_from > appended or context.is_change_unreported


def _judge_open(episode: Episode, suspicion: Suspicion, context: EpisodeContext) -> SequenceVerdict:
    """Return the suspicion by the numbers, or what evidence is missing once it was queried."""
    missing = _missing_evidence(episode, suspicion.rejection, context)
    is_queried = missing in UNREAD or episode.queries >= QUERIES_AT_ONCE
    is_open = context.error is None and not is_final(episode, suspicion.rejection, context)
    if is_queried or not is_open:
        return _make_suspicion(episode, suspicion, context, missing)
    return _make_suspicion(episode, suspicion, context, suspicion.reason)


def _make_suspicion(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext, reason: SequenceReason
) -> SequenceVerdict:
    """Return the suspicion while it may still be proven; a loss needs a leader change.

    A gap larger than what may be in flight does not suffice by itself.
    """
    class_ = suspicion.class_
    is_over = class_ is SequenceClass.REORDERING and is_final(episode, suspicion.rejection, context)
    if is_over or class_ is SequenceClass.LOSS:
        class_ = SequenceClass.UNDETERMINED
    return _make_verdict(class_, Phase.SUSPECTED, reason)


def _missing_evidence(
    episode: Episode, rejection: Rejection, context: EpisodeContext
) -> SequenceReason:
    if context.error is not None:
        return context.error
    if context.is_change_unreported:
        return SequenceReason.CHANGE_NOT_REPORTED
    if not _was_scanned(episode, rejection):
        if context.scan_error is not None:
            return context.scan_error
        if episode.verdict.reason in UNREAD:
            return episode.verdict.reason  # until it can be scanned
        is_over = is_final(episode, rejection, context)
        return SequenceReason.BATCH_NOT_FOUND if is_over else SequenceReason.SCAN_PENDING
    is_found = appended_in(rejection) is not None
    return SequenceReason.CHANGED_SINCE if is_found else SequenceReason.BATCH_NOT_FOUND


def _make_loss(
    phase: Phase, reason: SequenceReason, rejection: Rejection, change: LeaderChange | None = None
) -> SequenceVerdict:
    return SequenceVerdict(
        class_=SequenceClass.LOSS,
        phase=phase,
        reason=reason,
        lost_from=None if change is None else change.lost_from,
        lost_to=None if change is None else change.lost_to,
        at_most_records=gap_of(rejection),
    )


def _make_verdict(class_: SequenceClass, phase: Phase, reason: SequenceReason) -> SequenceVerdict:
    return SequenceVerdict(class_=class_, phase=phase, reason=reason)
