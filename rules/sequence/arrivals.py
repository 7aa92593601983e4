"""Whether a refused batch came after all: what is proven harmless may still not have been written.

Continuity proves that nothing acknowledged is missing, and says nothing of the batch itself: its client
may have given it up. A later entry of the same producer epoch that holds it is its arrival.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.broker_log import SequenceForm
from rules.facts.episodes import Episode
from rules.facts.refusals import Refusal
from rules.facts.sequence_verdicts import Arrival, SequenceClass, SequenceReason
from rules.facts.times import MICROSECOND
from rules.sequence.log_entries import producer_epoch_of
from rules.sequence.numbers import (
    expected_sequence,
    gap_of,
    is_ahead,
    is_behind,
    is_start,
    standing_with,
)
from rules.sequence.proofs import is_next
from rules.sequence.sight import DELIVERY_TIMEOUT, Sight

# An investigation lasts so long at most, since the refusal: by then clients have given up.
INVESTIGATED: Final = timedelta(minutes=5)
HARMLESS: Final = (
    SequenceClass.REORDERING,
    SequenceClass.CLIENT_FAILURE,
    SequenceClass.SEQUENCE_RESTART,
)


def arrival_of(refusal: Refusal, episode: Episode, sight: Sight) -> Arrival:
    """Return what became of a refused batch before which nothing acknowledged is missing."""
    if refusal.proof is None:
        return Arrival.AWAITED
    if refusal.arrival is not Arrival.AWAITED:
        return refusal.arrival
    if is_behind(refusal) or _has_arrived(refusal, episode):
        return Arrival.ARRIVED
    if _is_over(refusal, episode):
        return Arrival.NEWER_EPOCH
    if was_looked_at_late(episode):
        return Arrival.NOT_ARRIVED
    is_late = sight.now_us >= refusal.seen_us + INVESTIGATED // MICROSECOND
    return Arrival.NOT_KNOWN if is_late else Arrival.AWAITED


def was_looked_at_late(episode: Episode) -> bool:
    """Whether all that came was looked at when a client would have given up."""
    looked = episode.end_looked_us
    late = episode.last_seen_us + DELIVERY_TIMEOUT // MICROSECOND
    return looked is not None and looked >= late


def told_arrival(episode: Episode) -> Arrival | None:
    """Return what became of the refused batch, where it is proven that nothing else is missing."""
    refusal, verdict = episode.shown, episode.verdict
    is_harmless = verdict.is_confirmed and verdict.class_ in HARMLESS
    is_clients = verdict.reason is SequenceReason.RECORD_ERROR  # who has told of it itself
    if not is_harmless or is_clients or refusal.proof is None or is_behind(refusal):
        return None
    return refusal.arrival


def unwritten_records(refusal: Refusal, episode: Episode) -> int:
    """Return how many records did not come, at least: those that are missing, and one of the batch."""
    if refusal.proof is SequenceReason.FILLED:
        return 1
    beside = [one for one in standing_with(refusal, episode.refusals) if not one.came]
    return 1 + max((gap_of(one) or 0 for one in beside), default=gap_of(refusal) or 0)


def _has_arrived(refusal: Refusal, episode: Episode) -> bool:
    """Whether the log holds the batch, behind the one that was missing, or the leader remembers it."""
    after, look = refusal.after, episode.last_state
    if refusal.came and after is not None and after.base_sequence == expected_sequence(refusal):
        return _begins_anew(refusal) or is_next(refusal, episode)
    if refusal.proof is not SequenceReason.FILLED or look is None or look.state is None:
        return False
    last, epoch = look.state.last_sequence, _epoch_of(refusal, episode)
    if last is None or epoch not in (None, look.state.producer_epoch):
        return False
    is_there = last == refusal.incoming_sequence or is_ahead(last, of=refusal.incoming_sequence)
    return is_there and look.looked_us > refusal.seen_us


def _is_over(refusal: Refusal, episode: Episode) -> bool:
    """Whether the producer epoch of the batch is over: a broker takes nothing more of it."""
    if _begins_anew(refusal) and not is_next(refusal, episode):
        return refusal.after is not None and refusal.after.is_marker
    epoch, newest = _epoch_of(refusal, episode), episode.newest_producer_epoch
    return epoch is not None and newest is not None and newest > epoch


def _begins_anew(refusal: Refusal) -> bool:
    """Whether it is of a transaction of which nothing was there: its epoch is not told."""
    return is_start(refusal) or refusal.form is SequenceForm.EARLIEST_SEEN


def _epoch_of(refusal: Refusal, episode: Episode) -> int | None:
    if refusal.after is not None and is_next(refusal, episode):
        return refusal.after.producer_epoch
    return producer_epoch_of(refusal)
