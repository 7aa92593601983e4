"""Decides what an episode is: the proofs first, then leader changes, then the numbers.

Every rejection is judged by itself, and the episode is what the worst of them is: a loss and a later
reordering of the same producer are a loss. Confirmed is only what is proven (DESIGN 6.2).
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
QUERIES_IN_A_ROW: Final = 6  # the others when the client has given up
MAX_TOTAL_QUERIES: Final = 40  # a producer that is rejected again and again takes no more
# How long before and after a rejection a producer's failed records count as its own: it gives them up
# after its delivery timeout, and tells it with the next scrape.
FAILED_WITHIN: Final = DELIVERY_TIMEOUT + timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One rejection and what is said of it."""

    rejection: Rejection
    verdict: SequenceVerdict


def leading(
    episode: Episode, context: EpisodeContext, only_failed: OnlyFailed = lambda *_: None
) -> Decided:
    """Return what is said of an episode by all that is known of it, and the rejection that decides."""
    suspicions = suspicions_of(episode.rejections, episode.largest_batch)
    judged = [_judged(episode, suspicion, context) for suspicion in suspicions]
    worst = judged[0] if len(judged) == 1 else min(judged, key=_badness)
    if context.is_silent and not worst.verdict.is_confirmed:
        return min(_in_silence(episode, judged, context), key=_badness)
    if _may_be_the_clients(worst) and _has_failed(episode, only_failed):
        class_, reason = SequenceClass.CLIENT_FAILURE, SequenceReason.RECORD_ERROR
        return Decided(rejection=worst.rejection, verdict=_said(class_, Phase.CONFIRMED, reason))
    return worst


def _in_silence(episode: Episode, judged: list[Decided], context: EpisodeContext) -> list[Decided]:
    """Return what was said before, and what is said of new rejections: nothing else is known."""
    known = [one for one in judged if one.rejection.seen_us < context.now_us]
    if not known:
        return judged
    keys = [one.rejection.key for one in known]
    shown = known[keys.index(episode.shown.key) if episode.shown.key in keys else 0].rejection
    new = [one for one in judged if one.rejection.seen_us >= context.now_us]
    said = episode.verdict
    if said.reason in BY_LINES and context.error is not None:
        said = replace(said, reason=context.error)
    return [Decided(rejection=shown, verdict=said), *new]


def is_patient(episode: Episode, context: EpisodeContext) -> bool:
    """Whether the time in which a client tries again has not passed yet since the last rejection."""
    return context.now_us < episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND


def is_final(episode: Episode, rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether nothing more is awaited that could change what is said of a rejection.

    A producer that is rejected again and again makes nobody wait for ever.
    """
    age_us = context.now_us - rejection.seen_us
    if age_us < DELIVERY_TIMEOUT // MICROSECOND:
        return False
    is_exhausted = episode.queries >= QUERIES_IN_A_ROW or episode.total_queries >= MAX_TOTAL_QUERIES
    is_unseen = context.error is not None and not context.is_silent
    return is_unseen or is_exhausted or age_us >= INVESTIGATED // MICROSECOND


def _badness(one: Decided) -> tuple[int, int, int, int]:
    """Put losses first, the proven ones at the front; then what is open; then what is harmless."""
    is_loss, is_sure = one.verdict.class_ is SequenceClass.LOSS, one.verdict.is_confirmed
    rank = (0 if is_sure else 1) if is_loss else (3 if is_sure else 2)
    first = one.rejection.first_us or 0
    return rank, RANK.index(one.verdict.class_), first, gap_of(one.rejection) or 0


def _judged(episode: Episode, suspicion: Suspicion, context: EpisodeContext) -> Decided:
    rejection = suspicion.rejection
    if rejection.proof is not None:
        verdict = _harmless(episode, rejection, context)
    elif is_behind(rejection):
        verdict = _open(episode, suspicion, context)
    else:
        verdict = (
            _by_changes(episode, rejection, context)
            or _by_state(episode, suspicion, context)
            or _by_clean_changes(episode, suspicion, context)
            or _open(episode, suspicion, context)
        )
    return Decided(rejection=rejection, verdict=verdict)


# ------------------------------------------------------------------ proven: nothing is missing
def _harmless(episode: Episode, rejection: Rejection, context: EpisodeContext) -> SequenceVerdict:
    reason = rejection.proof or SequenceReason.FILLED
    if is_behind(rejection):
        return _said(SequenceClass.STALE_RETRY, Phase.CONFIRMED, reason)
    if reason in CONTINUITY and rejection.form is SequenceForm.NEW_EPOCH:
        return _restart(episode, rejection, reason, context)
    return _in_order(rejection, reason)


def _in_order(rejection: Rejection, reason: SequenceReason) -> SequenceVerdict:
    """Say that batches came in another order, or, where one did not come at all, that it did not."""
    if rejection.arrival is Arrival.NOT_ARRIVED and reason is not SequenceReason.FILLED:
        not_arrived = SequenceReason.NOT_ARRIVED
        return _said(SequenceClass.CLIENT_FAILURE, Phase.CONFIRMED, not_arrived)
    return _said(SequenceClass.REORDERING, Phase.CONFIRMED, reason)


def _restart(
    episode: Episode, rejection: Rejection, reason: SequenceReason, context: EpisodeContext
) -> SequenceVerdict:
    """Tell a client that keeps starting above 0 from a reordering at an epoch's start."""
    unfilled = [
        one
        for one in episode.rejections
        if one.form is SequenceForm.NEW_EPOCH
        and one.proof in CONTINUITY
        and one.current_epoch == rejection.current_epoch
    ]
    if len({one.producer_epoch for one in unfilled}) > 1:
        above = SequenceReason.EPOCHS_ABOVE_ZERO
        return _said(SequenceClass.SEQUENCE_RESTART, Phase.CONFIRMED, above)
    repeats = sum(
        one.count for one in unfilled if one.incoming_sequence == rejection.incoming_sequence
    )
    if repeats < REPEATS:
        return _in_order(rejection, reason)
    if was_scanned_late(episode):
        above = SequenceReason.EPOCHS_ABOVE_ZERO
        return _said(SequenceClass.SEQUENCE_RESTART, Phase.CONFIRMED, above)
    phase = Phase.CONFIRMED if is_final(episode, rejection, context) else Phase.SUSPECTED
    return _said(SequenceClass.REORDERING, phase, reason)


def _was_scanned(episode: Episode, rejection: Rejection) -> bool:
    """Whether the log was scanned around the rejected batch, after it was rejected."""
    observed = episode.batches_scanned_us
    return observed is not None and observed > rejection.seen_us


def _may_be_the_clients(one: Decided) -> bool:
    """Whether nothing acknowledged is missing, and what is missing did not come."""
    if is_behind(one.rejection):
        return False
    verdict = one.verdict
    if verdict.reason in (SequenceReason.CLEAN_CHANGES, SequenceReason.NOT_ARRIVED):
        return True
    return verdict.class_ is SequenceClass.REORDERING and verdict.reason in CONTINUITY


def _has_failed(episode: Episode, only_failed: OnlyFailed) -> bool:
    if episode.name is None:
        return False
    since = EPOCH + episode.first_seen_us * MICROSECOND - FAILED_WITHIN
    until = EPOCH + episode.last_seen_us * MICROSECOND + FAILED_WITHIN
    return only_failed(episode.name.topic, since, until) is not None


# ------------------------------------------------------------------ the leader changed in between
def _by_changes(
    episode: Episode, rejection: Rejection, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge where a change between the last sequence and the rejection was not clean."""
    between = [change for change in episode.changes if lies_between(change, rejection)]
    lost = next((one for one in between if one.kind is ChangeKind.LOST), None)
    if lost is not None:
        if _was_scanned(episode, rejection):
            return _lost(Phase.CONFIRMED, SequenceReason.LOSS_PROVEN, rejection, lost)
        return _lost(Phase.SUSPECTED, _missing(episode, rejection, context), rejection)
    unclean = next((one for one in between if one.kind is ChangeKind.UNCLEAN), None)
    if unclean is not None:
        if was_scanned_late(episode):
            return _lost(Phase.CONFIRMED, SequenceReason.UNCLEAN_AND_UNHEALED, rejection, unclean)
        return _lost(Phase.SUSPECTED, SequenceReason.UNCLEAN_CHANGE, rejection)
    if _may_have_changed(episode, rejection, context):
        return _lost(Phase.SUSPECTED, SequenceReason.CHANGE_NOT_KNOWN, rejection)
    return None


def _may_have_changed(episode: Episode, rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether a bad change may lie in between; of a partition that is not seen nothing is known."""
    is_unseen = context.error is not None and context.leader_epoch is None
    return not is_unseen and any(may_lie_between(change, rejection) for change in episode.changes)


def _by_clean_changes(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge where the last sequence is of an older leader epoch, and no bad change is known."""
    appended = appended_in(suspicion.rejection)
    if appended is None or context.leader_epoch is None or appended >= context.leader_epoch:
        return None
    if context.is_change_unreported:
        return _not_known(episode, suspicion, context, SequenceReason.CHANGE_NOT_REPORTED)
    if context.watched_from is None or context.watched_from > appended:
        if suspicion.class_ is SequenceClass.LOSS:
            return _lost(Phase.SUSPECTED, SequenceReason.CHANGES_UNSEEN, suspicion.rejection)
        return _not_known(episode, suspicion, context, SequenceReason.CHANGES_UNSEEN)
    if any(change.leader_epoch > appended for change in episode.changes):
        return None  # it is known that they came after the rejection
    is_later = _was_rejected_in(appended, suspicion.rejection, episode)
    is_certain = context.clean_from is not None and context.clean_from <= appended
    return _by_watched_changes(suspicion, is_certain=is_certain, is_later=is_later)


def _by_watched_changes(
    suspicion: Suspicion, *, is_certain: bool, is_later: bool
) -> SequenceVerdict:
    if is_later:  # one leader had the last batch and rejected this one: it lost nothing in between
        changed = SequenceReason.CHANGED_SINCE
        return _said(SequenceClass.UNDETERMINED, Phase.SUSPECTED, changed)
    if is_certain:
        clean = SequenceReason.CLEAN_CHANGES
        return _said(SequenceClass.CLIENT_FAILURE, Phase.SUSPECTED, clean)
    seeming = SequenceReason.SEEMINGLY_CLEAN
    if suspicion.class_ is SequenceClass.LOSS:
        return _lost(Phase.SUSPECTED, seeming, suspicion.rejection)
    return _said(SequenceClass.CLIENT_FAILURE, Phase.SUSPECTED, seeming)


def _was_rejected_in(leader_epoch: int, rejection: Rejection, episode: Episode) -> bool:
    """Whether this leader epoch was still there when the line had been read."""
    observation = episode.first_state
    if observation is None or observation.observed_us <= rejection.seen_us:
        return False
    return observation.leader_epoch <= leader_epoch


# ------------------------------------------------------------------ not proven
def _by_state(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext
) -> SequenceVerdict | None:
    """Judge where the leader knows nothing of the producer, and nothing came since.

    A leader that took over uncleanly knows nothing either, of a producer of which it lost all.
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
            _lost(Phase.SUSPECTED, SequenceReason.SEEMINGLY_CLEAN, rejection)
            if is_reported
            else None
        )
    if not _had_state(episode, rejection):
        return None
    lost = SequenceClass.PRODUCER_STATE_LOST
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    if observation.observed_us >= late and not is_patient(episode, context):
        return _said(lost, Phase.CONFIRMED, SequenceReason.NO_STATE)
    if is_final(episode, rejection, context):
        return None  # whether it still knows nothing was not told
    return _said(lost, Phase.SUSPECTED, SequenceReason.HEALING)


def _had_state(episode: Episode, rejection: Rejection) -> bool:
    """Whether a leader ever had a state of the producer: at its first transaction there is none."""
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


def _open(episode: Episode, suspicion: Suspicion, context: EpisodeContext) -> SequenceVerdict:
    """Say what the numbers suspect, and what is missing once it was asked for."""
    missing = _missing(episode, suspicion.rejection, context)
    is_queried = missing in UNREAD or episode.queries >= QUERIES_AT_ONCE
    is_open = context.error is None and not is_final(episode, suspicion.rejection, context)
    if is_queried or not is_open:
        return _not_known(episode, suspicion, context, missing)
    return _not_known(episode, suspicion, context, suspicion.reason)


def _not_known(
    episode: Episode, suspicion: Suspicion, context: EpisodeContext, reason: SequenceReason
) -> SequenceVerdict:
    """Say what is suspected while that may still be proven: without a change of leader no loss.

    That more is missing than may be in flight is no ground by itself: what was not seen is not known.
    """
    class_ = suspicion.class_
    is_over = class_ is SequenceClass.REORDERING and is_final(episode, suspicion.rejection, context)
    if is_over or class_ is SequenceClass.LOSS:
        class_ = SequenceClass.UNDETERMINED
    return _said(class_, Phase.SUSPECTED, reason)


def _missing(episode: Episode, rejection: Rejection, context: EpisodeContext) -> SequenceReason:
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
        return SequenceReason.BATCH_NOT_FOUND if is_over else SequenceReason.LOOKING
    is_found = appended_in(rejection) is not None
    return SequenceReason.CHANGED_SINCE if is_found else SequenceReason.BATCH_NOT_FOUND


def _lost(
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


def _said(class_: SequenceClass, phase: Phase, reason: SequenceReason) -> SequenceVerdict:
    return SequenceVerdict(class_=class_, phase=phase, reason=reason)
