"""Verdicts on a rejected sequence: its class, whether it is proven, and the reason.

A broker's line triggers an investigation and is never a verdict: to the producer a healed reordering and
a true loss are alike (docs/sequence.md). A verdict is therefore suspected, or confirmed by a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class SequenceClass(StrEnum):
    """What became of the records that were missing before a rejected batch."""

    REORDERING = "reordering"  # they arrive later: nothing that was acknowledged is missing
    LOSS = "loss"  # they had been acknowledged, and are gone
    CLIENT_FAILURE = "client_failure"  # the client gave them up; its application got an error
    STALE_RETRY = "stale_retry"  # nothing is missing: a batch came again that is in the log
    SEQUENCE_RESTART = "sequence_restart"  # a client's bug: new epochs do not begin at 0
    PRODUCER_STATE_LOST = "producer_state_lost"  # the broker has no state of the producer any more
    UNDETERMINED = "undetermined"


class Phase(StrEnum):
    """Whether a verdict is proven."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"


class SequenceReason(StrEnum):
    """Why a verdict was reached; the first group needs only the log lines."""

    EARLIEST_SEEN = "earliest_seen"  # the broker itself says that an earlier one came later
    SMALL_GAP = "small_gap"  # as much as may be in flight at once
    TRANSACTION_START = "transaction_start"  # the broker had nothing of the transaction yet
    MOVES_ON = "moves_on"  # the last sequence moved on between two rejections
    LARGE_GAP = "large_gap"  # more than may be in flight at once
    SAME_AGAIN = "same_again"  # the same batch is rejected again and again
    BEHIND = "behind"  # it is not above the last sequence
    EPOCHS_ABOVE_ZERO = "epochs_above_zero"  # several new epochs began above 0

    # Nothing that was acknowledged is missing.
    FILLED = "filled"  # the missing records arrived
    FIRST_LEADER_EPOCH = "first_leader_epoch"  # the partition never had another leader
    SAME_LEADER_EPOCH = "same_leader_epoch"  # the last sequence was appended in the present epoch
    MOVED_IN_LEADER_EPOCH = "moved_in_leader_epoch"  # likewise: it advanced while the leader stayed
    PERSISTED = "persisted"  # the rejected batch itself is in the log
    RECORD_ERROR = "record_error"  # one producer of the topic, and no other, had records fail
    NOT_ARRIVED = "not_arrived"  # by continuity; and the rejected batch did not come in time

    # Acknowledged records of a producer whose state is gone may be there, or not.
    NO_STATE = "no_state"  # the leader knows nothing of the producer, and it did not heal

    # The leader changed after the last sequence had been appended.
    LOSS_PROVEN = "loss_proven"  # the new leader lacks what was committed
    UNCLEAN_AND_UNHEALED = "unclean_and_unhealed"  # unclean, and nothing came in time
    UNCLEAN_CHANGE = "unclean_change"  # unclean, and there is still time for it to heal
    CHANGE_NOT_KNOWN = "change_not_known"  # it may have been unclean
    CHANGE_NOT_REPORTED = "change_not_reported"  # the end of the older epoch is not reported yet
    CLEAN_CHANGES = "clean_changes"  # all were clean: what was acknowledged is there
    SEEMINGLY_CLEAN = "seemingly_clean"  # as far as was seen, where elections may be unclean
    CHANGES_UNSEEN = "changes_unseen"  # some were not watched, or not compared, or are forgotten

    # Decisive evidence is missing.
    SCAN_PENDING = "scan_pending"  # queried, and not answered yet
    HEALING = "healing"  # the leader knows nothing of the producer; it may still heal
    PARTITION_NOT_REPORTED = "partition_not_reported"  # the line is of an old broker
    PRODUCER_NOT_REPORTED = "producer_not_reported"  # likewise
    PARTITION_NOT_SEEN = "partition_not_seen"  # brokers were not, or could not be queried about it
    TOPIC_RECREATED = "topic_recreated"  # the line is of an older topic of that name
    NOT_READABLE = "not_readable"  # READ on the topic is missing
    SCAN_FAILED = "scan_failed"  # the leader did not answer
    CHANGED_SINCE = "changed_since"  # the leader has changed after the rejection
    BATCH_NOT_FOUND = "batch_not_found"  # the last sequence is not in what was scanned


# The last sequence was appended in the leader epoch in which the batch was rejected.
CONTINUITY: Final = (
    SequenceReason.SAME_LEADER_EPOCH,
    SequenceReason.FIRST_LEADER_EPOCH,
    SequenceReason.MOVED_IN_LEADER_EPOCH,
)


# Reasons from the log lines alone.
BY_LINES: Final = (
    SequenceReason.SMALL_GAP,
    SequenceReason.TRANSACTION_START,
    SequenceReason.MOVES_ON,
    SequenceReason.LARGE_GAP,
    SequenceReason.SAME_AGAIN,
    SequenceReason.BEHIND,
    SequenceReason.EPOCHS_ABOVE_ZERO,
    SequenceReason.SCAN_PENDING,
)
# Why a log could not be scanned.
UNREAD: Final = (SequenceReason.NOT_READABLE, SequenceReason.SCAN_FAILED)


class Arrival(StrEnum):
    """Whether a rejected batch arrived later, where nothing acknowledged is missing before it."""

    AWAITED = "awaited"  # not yet: its client may still send it
    ARRIVED = "arrived"
    NEWER_EPOCH = "newer_epoch"  # not in its own producer epoch, which is over
    NOT_ARRIVED = "not_arrived"  # not within the time in which a client retries
    NOT_KNOWN = "not_known"  # the log could not be scanned for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceVerdict:
    """The verdict on one episode."""

    class_: SequenceClass
    phase: Phase
    reason: SequenceReason
    # The offsets that are gone, `lost_to` exclusive, where that is proven; of the partition, and not
    # of this producer alone.
    lost_from: int | None = None
    lost_to: int | None = None
    at_most_records: int | None = None  # of this producer may be lost: its gap

    @property
    def lost_offsets(self) -> int | None:
        """Return how many offsets are gone; None where that is not proven."""
        if self.lost_from is None or self.lost_to is None:
            return None
        return self.lost_to - self.lost_from

    @property
    def is_confirmed(self) -> bool:
        """Whether there is a proof."""
        return self.phase is Phase.CONFIRMED
