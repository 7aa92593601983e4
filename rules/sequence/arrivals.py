"""Whether a rejected batch arrived later: it may never be written even where no loss is possible.

Continuity proves that nothing acknowledged is missing, but not that the batch itself was written: its
client may have given it up. It has arrived when a later entry of the same producer epoch contains it.
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

# The longest investigation, from the rejection on: by then clients have given up.
INVESTIGATED: Final = timedelta(minutes=5)
# Classes of which no acknowledged record is missing: evidence for one is none against another.
HARMLESS: Final = frozenset(
    {SequenceClass.REORDERING, SequenceClass.CLIENT_FAILURE, SequenceClass.SEQUENCE_RESTART}
)


def arrival_of(rejection: Rejection, episode: Episode, context: EpisodeContext) -> Arrival:
    """Return whether a rejected batch arrived, given that nothing acknowledged is missing before it."""
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
    """Whether the log was scanned to its end after the client's delivery timeout."""
    observed = episode.end_scanned_us
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    return observed is not None and observed >= late


def arrival_evidence(episode: Episode) -> Arrival | None:
    """Return whether the rejected batch arrived; None unless it is proven that nothing else is missing."""
    rejection, verdict = episode.shown, episode.verdict
    is_harmless = verdict.is_confirmed and verdict.class_ in HARMLESS
    # With this reason the client itself has counted the error.
    is_clients = verdict.reason is SequenceReason.RECORD_ERROR
    if not is_harmless or is_clients or rejection.proof is None or is_behind(rejection):
        return None
    return rejection.arrival


def unwritten_records(rejection: Rejection, episode: Episode) -> int:
    """Return how many records were not written, at least: the missing ones and one of the batch."""
    if rejection.proof is SequenceReason.FILLED:
        return 1
    beside = [other for other in unresolved_with(rejection, episode.rejections) if not other.came]
    return 1 + max((gap_of(other) or 0 for other in beside), default=gap_of(rejection) or 0)


def _has_arrived(rejection: Rejection, episode: Episode) -> bool:
    """Whether the log holds the batch, after the one that was missing, or the leader remembers it."""
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
    """Whether the producer epoch of the batch is over: brokers accept no more batches of it."""
    if _begins_anew(rejection) and not is_next(rejection, episode):
        return rejection.after is not None and rejection.after.is_marker
    epoch, newest = _epoch_of(rejection, episode), episode.newest_producer_epoch
    return epoch is not None and newest is not None and newest > epoch


def _begins_anew(rejection: Rejection) -> bool:
    """Whether the broker had no batch of its transaction yet: the log line has no epoch then."""
    return is_start(rejection) or rejection.form is SequenceForm.EARLIEST_SEEN


def _epoch_of(rejection: Rejection, episode: Episode) -> int | None:
    if rejection.after is not None and is_next(rejection, episode):
        return rejection.after.producer_epoch
    return producer_epoch_of(rejection)
