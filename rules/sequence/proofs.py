"""Proves that no acknowledged record is missing before a rejected batch: by continuity or by healing.

While a leader epoch lasts its leader loses nothing that it appended. If the last sequence was
appended in the epoch that is still current after the rejection, nothing acknowledged can be missing
between it and the rejected batch. A client that sends the missing batches proves the same: clients do
not resend what was acknowledged. Epoch bumps of producers prove neither (docs/sequence.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from rules.facts.broker_log import SequenceForm
from rules.facts.episodes import Episode, StateObservation
from rules.facts.rejections import LogEntry, Rejection
from rules.facts.sequence_verdicts import CONTINUITY, SequenceReason
from rules.sequence.episode_context import EpisodeContext
from rules.sequence.log_entries import is_of_epoch, last_of, producer_epoch_of
from rules.sequence.numbers import (
    NO_BATCH,
    expected_sequence,
    is_ahead,
    is_behind,
    last_sequence,
)


def proof_of(
    rejection: Rejection, episode: Episode, context: EpisodeContext
) -> SequenceReason | None:
    """Return why no acknowledged record is missing before a rejected batch; None: not proven."""
    if rejection.form is SequenceForm.EARLIEST_SEEN:
        return SequenceReason.EARLIEST_SEEN
    if not is_behind(rejection) and is_filled(rejection, episode):
        return SequenceReason.FILLED  # behind the last sequence nothing was missing
    if rejection.proof is not None:
        return rejection.proof
    if context.leader_epoch is None or not _knows_of_state(rejection, episode):
        return None
    return _continuity(rejection, episode.rejections, context)


def _continuity(
    rejection: Rejection, among: Iterable[Rejection], context: EpisodeContext
) -> SequenceReason | None:
    last, epoch = last_of(rejection), context.leader_epoch
    if last is not None and last.leader_epoch == epoch:
        return SequenceReason.SAME_LEADER_EPOCH
    if not context.is_after(rejection):
        return None
    if epoch == 0 and _began_before(rejection, context):
        return SequenceReason.FIRST_LEADER_EPOCH
    if any(_moved_since(rejection, other, context) for other in among if other is not rejection):
        return SequenceReason.MOVED_IN_LEADER_EPOCH
    return None


def _began_before(rejection: Rejection, context: EpisodeContext) -> bool:
    """Whether the partition was watched before the line was read: it was not created since."""
    since = context.epoch_since_us
    return since is not None and since < rejection.seen_us


def _moved_since(rejection: Rejection, earlier: Rejection, context: EpisodeContext) -> bool:
    """Whether its last sequence was appended after another rejection in the present leader epoch."""
    if not rejection.form is earlier.form is SequenceForm.OUT_OF_ORDER:
        return False
    if rejection.offset is None or earlier.offset is None or rejection.offset <= earlier.offset:
        return False
    if not is_ahead(last_sequence(rejection), of=last_sequence(earlier)):
        return False
    is_proven = earlier.proof in CONTINUITY and earlier.proof_leader_epoch == context.leader_epoch
    return is_proven or context.holds_at(earlier)


def _knows_of_state(rejection: Rejection, episode: Episode) -> bool:
    """Whether the leader is known to have the producer's state, where the line says that it had none."""
    if rejection.form is not SequenceForm.EXPECTED_ZERO:
        return True
    return episode.last_state is not None and episode.last_state.state is not None


def is_filled(rejection: Rejection, episode: Episode) -> bool:
    """Whether the missing batches arrived later."""
    if rejection.after is None and episode.last_state is None:
        return False
    return is_next(rejection, episode) or _state_moved(rejection, episode)


def is_next(rejection: Rejection, episode: Episode) -> bool:
    """Whether the next log entry is the batch that the broker expected, in the same producer epoch."""
    entry = rejection.after
    if entry is None or entry.base_sequence != expected_sequence(rejection):
        return False
    return is_of_epoch(rejection, entry.producer_epoch) or _begins(entry, rejection, episode)


def _begins(entry: LogEntry, rejection: Rejection, episode: Episode) -> bool:
    """Whether an entry begins the very transaction whose later batch was rejected at its start.

    The line has no epoch, and the last marker has it only where the producer wrote here in the previous
    transaction. A newer transaction would be preceded by the marker of this one.
    """
    if rejection.form is not SequenceForm.EXPECTED_ZERO or rejection.offset is None:
        return False
    if entry.leader_epoch != episode.leader_epoch:
        return False
    if rejection.marker is None:
        return rejection.before is None
    return entry.producer_epoch > rejection.marker.producer_epoch


def _state_moved(rejection: Rejection, episode: Episode) -> bool:
    """Whether the leader had the last sequence after the rejection, and then a later one."""
    first, last = episode.first_state, episode.last_state
    if _is_past(rejection, last, episode):
        return True
    if first is None or last is None or first.state is None or last.state is None:
        return False
    if first.leader_epoch != last.leader_epoch:
        return False
    if rejection.form is SequenceForm.NEW_EPOCH:
        return _has_begun(rejection, last, episode)
    start, now = first.state, last.state
    return (
        first.observed_us > rejection.seen_us
        and start.producer_epoch == now.producer_epoch
        and is_of_epoch(rejection, now.producer_epoch)
        and start.last_sequence is not None
        and now.last_sequence is not None
        and start.last_sequence == rejection.current_sequence
        and is_ahead(now.last_sequence, of=start.last_sequence)
    )


def _is_past(rejection: Rejection, last: StateObservation | None, episode: Episode) -> bool:
    """Whether the leader, whose log has the last sequence, has a later one of the same producer epoch."""
    if last is None or last.state is None or last.state.last_sequence is None:
        return False
    return (
        rejection.form is SequenceForm.OUT_OF_ORDER
        and last.observed_us > rejection.seen_us
        and last.leader_epoch == episode.leader_epoch
        and last.state.producer_epoch == producer_epoch_of(rejection)
        and last_sequence(rejection) != NO_BATCH
        and is_ahead(last.state.last_sequence, of=last_sequence(rejection))
    )


def _has_begun(rejection: Rejection, last: StateObservation, episode: Episode) -> bool:
    """Whether the rejected epoch was accepted since: it can begin at 0 alone."""
    return (
        last.state is not None
        and last.observed_us > rejection.seen_us
        and last.leader_epoch == episode.leader_epoch
        and last.state.producer_epoch == rejection.producer_epoch
        and last.state.last_sequence is not None
    )
