"""Whether a rejected batch came after all: what is proven harmless may still not have been written.

Continuity proves that nothing acknowledged is missing, and says nothing of the batch itself: its client
may have given it up. A later entry of the same producer epoch that holds it is its arrival.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.broker_log import SequenceForm
from rules.facts.episodes import Episode
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import Arrival, SequenceClass, SequenceReason
from rules.facts.times import MICROSECOND
from rules.sequence.episode_context import DELIVERY_TIMEOUT, EpisodeContext
from rules.sequence.log_entries import producer_epoch_of
from rules.sequence.numbers import (
    expected_sequence,
    gap_of,
    is_ahead,
    is_behind,
    is_start,
    unresolved_with,
)
from rules.sequence.proofs import is_next

# An investigation lasts so long at most, since the rejection: by then clients have given up.
INVESTIGATED: Final = timedelta(minutes=5)
HARMLESS: Final = (
    SequenceClass.REORDERING,
    SequenceClass.CLIENT_FAILURE,
    SequenceClass.SEQUENCE_RESTART,
)


def arrival_of(rejection: Rejection, episode: Episode, context: EpisodeContext) -> Arrival:
    """Return what became of a rejected batch before which nothing acknowledged is missing."""
    if rejection.proof is None:
        return Arrival.AWAITED
    if rejection.arrival is not Arrival.AWAITED:
        return rejection.arrival
    if is_behind(rejection) or _has_arrived(rejection, episode):
        return Arrival.ARRIVED
    if _is_over(rejection, episode):
        return Arrival.NEWER_EPOCH
    if was_scanned_late(episode):
        return Arrival.NOT_ARRIVED
    is_late = context.now_us >= rejection.seen_us + INVESTIGATED // MICROSECOND
    return Arrival.NOT_KNOWN if is_late else Arrival.AWAITED


def was_scanned_late(episode: Episode) -> bool:
    """Whether all that came was observed when a client would have given up."""
    observed = episode.end_scanned_us
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    return observed is not None and observed >= late


def arrival_evidence(episode: Episode) -> Arrival | None:
    """Return what became of the rejected batch, where it is proven that nothing else is missing."""
    rejection, verdict = episode.shown, episode.verdict
    is_harmless = verdict.is_confirmed and verdict.class_ in HARMLESS
    is_clients = verdict.reason is SequenceReason.RECORD_ERROR  # who has told of it itself
    if not is_harmless or is_clients or rejection.proof is None or is_behind(rejection):
        return None
    return rejection.arrival


def unwritten_records(rejection: Rejection, episode: Episode) -> int:
    """Return how many records did not come, at least: those that are missing, and one of the batch."""
    if rejection.proof is SequenceReason.FILLED:
        return 1
    beside = [one for one in unresolved_with(rejection, episode.rejections) if not one.came]
    return 1 + max((gap_of(one) or 0 for one in beside), default=gap_of(rejection) or 0)


def _has_arrived(rejection: Rejection, episode: Episode) -> bool:
    """Whether the log holds the batch, behind the one that was missing, or the leader remembers it."""
    after, observation = rejection.after, episode.last_state
    if rejection.came and after is not None and after.base_sequence == expected_sequence(rejection):
        return _begins_anew(rejection) or is_next(rejection, episode)
    if (
        rejection.proof is not SequenceReason.FILLED
        or observation is None
        or observation.state is None
    ):
        return False
    last, epoch = observation.state.last_sequence, _epoch_of(rejection, episode)
    if last is None or epoch not in (None, observation.state.producer_epoch):
        return False
    is_there = last == rejection.incoming_sequence or is_ahead(last, of=rejection.incoming_sequence)
    return is_there and observation.observed_us > rejection.seen_us


def _is_over(rejection: Rejection, episode: Episode) -> bool:
    """Whether the producer epoch of the batch is over: a broker takes nothing more of it."""
    if _begins_anew(rejection) and not is_next(rejection, episode):
        return rejection.after is not None and rejection.after.is_marker
    epoch, newest = _epoch_of(rejection, episode), episode.newest_producer_epoch
    return epoch is not None and newest is not None and newest > epoch


def _begins_anew(rejection: Rejection) -> bool:
    """Whether it is of a transaction of which nothing was there: its epoch is not told."""
    return is_start(rejection) or rejection.form is SequenceForm.EARLIEST_SEEN


def _epoch_of(rejection: Rejection, episode: Episode) -> int | None:
    if rejection.after is not None and is_next(rejection, episode):
        return rejection.after.producer_epoch
    return producer_epoch_of(rejection)
