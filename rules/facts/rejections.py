"""Rejections of one producer's batches on one partition, each distinct one once.

The same line may be read from two sources, and a client that retries is rejected again with the same
numbers: distinct rejections are kept, repeated ones are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rules.facts.broker_log import SequenceForm, SequenceRejected
from rules.facts.episode_transactions import RejectedTransaction
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.sequence_verdicts import CONTINUITY, Arrival, SequenceReason

TIMES_KEPT: Final = 32  # to recognise a line that is read a second time
GIVEN_UP: Final = (Arrival.NOT_ARRIVED, Arrival.NOT_KNOWN)  # until it is rejected once more
SEQUENCES: Final = 2**31  # int32 without a sign: 0 follows 2^31-1

RejectionKey: TypeAlias = tuple[str, int, int | None, int | None, int | None, BrokerId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A batch of the producer in the log, or the marker of one of its transactions."""

    base_offset: int
    last_offset: int
    leader_epoch: int  # in which it was appended
    producer_epoch: int
    base_sequence: int | None  # None: a marker
    last_sequence: int | None

    @property
    def is_marker(self) -> bool:
        """Whether it is the marker of a transaction."""
        return self.base_sequence is None

    def holds(self, sequence: int) -> bool:
        """Whether the entry contains this sequence, also across the wrap."""
        if self.base_sequence is None:
            return False
        return (sequence - self.base_sequence) % SEQUENCES <= self.last_offset - self.base_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A rejected batch; times in microseconds since 1970-01-01 UTC."""

    form: SequenceForm
    incoming_sequence: int
    current_sequence: int | None
    producer_epoch: int | None
    current_epoch: int | None
    offset: int | None  # that it would have got
    broker_id: BrokerId | None
    source: str
    count: int  # how often it was rejected
    times_us: tuple[int, ...]  # by the broker's clock, the latest ones, ascending; empty: not known
    seen_us: int  # the round that read the first of them
    # The producer's last batch in the log before that offset, the marker after that batch, and the first
    # entry from the offset on. Where the log has no batch before, `nothing_from` is the offset from which
    # on it was searched.
    before: LogEntry | None = None
    marker: LogEntry | None = None
    nothing_from: int | None = None
    after: LogEntry | None = None
    # The proof that nothing acknowledged is missing before it, and the partition's leader epoch at that
    # time. A proof stays valid.
    proof: SequenceReason | None = None
    proof_leader_epoch: int | None = None
    # Whether the rejected batch is in the log, in the producer epoch of the next entry, and whether it
    # arrived; the latter is known only for proven rejections.
    came: bool = False
    arrival: Arrival = Arrival.AWAITED
    transaction: RejectedTransaction | None = None  # of the batch; None: nothing is known of one

    @property
    def key(self) -> RejectionKey:
        """Return the key of distinct rejections: all their numbers except times."""
        return (
            str(self.form),
            self.incoming_sequence,
            self.current_sequence,
            self.producer_epoch,
            self.offset,
            self.broker_id,
        )

    @property
    def is_settled(self) -> bool:
        """Whether further queries would change nothing.

        A new epoch that does not begin at 0 may be a client's bug, where no later batch arrives.
        """
        is_new_epoch = self.form is SequenceForm.NEW_EPOCH
        if self.proof is None or (is_new_epoch and self.proof in CONTINUITY):
            return False
        return self.arrival is not Arrival.AWAITED

    @property
    def first_us(self) -> int | None:
        """Return the earliest kept time."""
        return self.times_us[0] if self.times_us else None

    @property
    def last_us(self) -> int | None:
        """Return the latest kept time."""
        return self.times_us[-1] if self.times_us else None


def rejection_of(event: SequenceRejected, seen_us: int = 0) -> Rejection:
    """Return the rejection of one line that was read in the round of `seen_us`."""
    at = event.origin.at
    return Rejection(
        form=event.form,
        incoming_sequence=event.incoming_sequence,
        current_sequence=event.current_sequence,
        producer_epoch=event.producer_epoch,
        current_epoch=event.current_epoch,
        offset=event.offset,
        broker_id=event.origin.broker_id,
        source=event.origin.source,
        count=1,
        times_us=() if at is None else (microseconds(at),),
        seen_us=seen_us,
    )


def distinct(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Return each distinct rejection once, with its count, in the order of their times."""
    by_key: dict[RejectionKey, Rejection] = {}
    for rejection in rejections:
        key = rejection.key
        before = by_key.get(key)
        by_key[key] = rejection if before is None else merge_rejections(before, rejection)
    return tuple(by_key.values() if len(by_key) == 1 else sorted(by_key.values(), key=order))


def merge_rejections(before: Rejection, again: Rejection) -> Rejection:
    """Merge two rejections with the same numbers; lines with the same time are the same line."""
    new = [time for time in again.times_us if time not in before.times_us]
    if again.times_us and not new:
        return before
    times = tuple(sorted({*before.times_us, *new})[-TIMES_KEPT:])
    twice = len(again.times_us) - len(new)
    count = before.count + again.count - twice
    arrival = Arrival.AWAITED if before.arrival in GIVEN_UP else before.arrival
    return replace(before, count=count, times_us=times, arrival=arrival)


def order(rejection: Rejection) -> tuple[int, bool, int, int, str]:
    """Return the sort key of rejections, which does not depend on the order of their lines."""
    return (
        rejection.first_us or 0,
        rejection.offset is not None,
        rejection.offset or 0,
        rejection.incoming_sequence,
        str(rejection.key),
    )
