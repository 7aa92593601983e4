"""Rejections of one producer's batches on one partition, each distinct one once.

The same line may come by two ways, and a client that retries is rejected again with the same numbers:
what differs is kept, what repeats is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rules.facts.broker_log import SequenceForm, SequenceRejected
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.sequence_verdicts import CONTINUITY, Arrival, SequenceReason

TIMES_KEPT: Final = 32  # by which a line that comes a second time is known
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
        """Whether this sequence is in it; over the wrap, too."""
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
    times_us: tuple[int, ...]  # by the broker's clock, the latest ones, ascending; none: not told
    seen_us: int  # the round that read the first of them
    # The last batch of the producer that the log has before that offset, the marker that came after
    # that one, and what the log has first from the offset on. Where it has no batch before,
    # `nothing_from` says from which offset on it was searched for.
    before: LogEntry | None = None
    marker: LogEntry | None = None
    nothing_from: int | None = None
    after: LogEntry | None = None
    # Why nothing acknowledged is missing before it, and the partition's leader epoch when that was
    # proven. Once proven it stays so.
    proof: SequenceReason | None = None
    proof_leader_epoch: int | None = None
    # Whether the epoch with which the log goes on from the offset holds the rejected batch, and what
    # became of it; told only of what is proven.
    came: bool = False
    arrival: Arrival = Arrival.AWAITED

    @property
    def key(self) -> RejectionKey:
        """Return what two rejections differ in, but for their times."""
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
        """Whether looking further would change nothing.

        A new epoch that does not begin at 0 may be a client's bug, where nothing comes later.
        """
        is_new_epoch = self.form is SequenceForm.NEW_EPOCH
        if self.proof is None or (is_new_epoch and self.proof in CONTINUITY):
            return False
        return self.arrival is not Arrival.AWAITED

    @property
    def first_us(self) -> int | None:
        """Return the earliest time that is kept."""
        return self.times_us[0] if self.times_us else None

    @property
    def last_us(self) -> int | None:
        """Return the latest time."""
        return self.times_us[-1] if self.times_us else None


def rejection_of(event: SequenceRejected, seen_us: int = 0) -> Rejection:
    """Return one line as a rejection that was read in the round of `seen_us`."""
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
    found: dict[RejectionKey, Rejection] = {}
    for rejection in rejections:
        key = rejection.key
        known = found.get(key)
        found[key] = rejection if known is None else merged(known, rejection)
    return tuple(found.values() if len(found) == 1 else sorted(found.values(), key=order))


def merged(known: Rejection, again: Rejection) -> Rejection:
    """Return two rejections of the same numbers as one; what has the same time is the same line."""
    new = [time for time in again.times_us if time not in known.times_us]
    if again.times_us and not new:
        return known
    times = tuple(sorted({*known.times_us, *new})[-TIMES_KEPT:])
    twice = len(again.times_us) - len(new)
    count = known.count + again.count - twice
    arrival = Arrival.AWAITED if known.arrival in GIVEN_UP else known.arrival
    return replace(known, count=count, times_us=times, arrival=arrival)


def order(rejection: Rejection) -> tuple[int, int, int, str]:
    """Return by what rejections are put in order, whatever the order of their lines was."""
    return (
        rejection.first_us or 0,
        -1 if rejection.offset is None else rejection.offset,
        rejection.incoming_sequence,
        str(rejection.key),
    )
