"""Suspects a class for rejected batches by their numbers alone, without querying a cluster.

Sequences count records, are int32 and wrap from 2^31-1 to 0: they are compared by their distance. A
producer has at most five batches in flight, so that at most four may be missing before one that
arrives too early; the number of records per batch is estimated. The numbers prove nothing, except for
one form in which the broker itself reports a reordering.
Source: KIP-98; `ProducerAppendInfo.checkSequence` of Kafka 1.1 to 4.x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from rules.facts.broker_log import SequenceForm
from rules.facts.rejections import SEQUENCES, Rejection
from rules.facts.sequence_verdicts import Phase, SequenceClass, SequenceReason

BEFORE_IN_FLIGHT: Final = 4  # batches: five are in flight, and the last one arrived first
REPEATS: Final = 3  # rejections of the same batch; a reordering heals in milliseconds, before that
NO_BATCH: Final = -1  # the last sequence of an epoch of which the broker has no batch

REORDERING: Final = SequenceClass.REORDERING

# Form, producer epoch, last sequence; at the start of a transaction also the producer's last offset.
_WaitKey: TypeAlias = tuple[str, int | None, int, int | None]

Suspected: TypeAlias = tuple[SequenceClass, SequenceReason]

# From the worst on: the class of several rejections is the worst of them.
RANK: Final = (
    SequenceClass.LOSS,
    SequenceClass.UNDETERMINED,
    SequenceClass.SEQUENCE_RESTART,
    SequenceClass.PRODUCER_STATE_LOST,
    SequenceClass.CLIENT_FAILURE,
    SequenceClass.STALE_RETRY,
    SequenceClass.REORDERING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """What the numbers of a rejection suggest."""

    class_: SequenceClass
    phase: Phase
    reason: SequenceReason
    rejection: Rejection

    @property
    def gap(self) -> int | None:
        """Return how many records are missing before the rejected batch; None: it is behind."""
        return gap_of(self.rejection)


def suspicion_of(rejections: Sequence[Rejection], largest_batch: int | None = None) -> Suspicion:
    """Return the worst suspicion for some distinct rejections; at least one is needed."""
    return worst(suspicions_of(rejections, largest_batch))


def worst(suspicions: Iterable[Suspicion]) -> Suspicion:
    """Return the worst of some suspicions; of equal classes the earliest, then the smallest gap."""
    return min(
        suspicions,
        key=lambda suspicion: (
            RANK.index(suspicion.class_),
            suspicion.rejection.first_us or 0,
            suspicion.gap or 0,
        ),
    )


def suspicions_of(
    rejections: Sequence[Rejection], largest_batch: int | None = None
) -> tuple[Suspicion, ...]:
    """Return the suspicion for each rejection, given the others of its producer."""
    if len(rejections) == 1:  # nearly all of them, when very many producers are rejected at once
        return (_suspect(rejections[0], lambda only: _of_group((only,), largest_batch)),)
    groups: dict[_WaitKey, list[Rejection]] = {}
    for rejection in rejections:
        if not is_behind(rejection):
            groups.setdefault(_wait_key(rejection), []).append(rejection)
    by_wait_key = {
        wait_key: _of_group(beside, largest_batch) for wait_key, beside in groups.items()
    }
    restarted, moved = list_restarted_epochs(rejections), _list_moved_on(groups)

    def beside(rejection: Rejection) -> Suspected:
        if rejection.form is SequenceForm.NEW_EPOCH and rejection.current_epoch in restarted:
            return SequenceClass.SEQUENCE_RESTART, SequenceReason.EPOCHS_ABOVE_ZERO
        wait_key = _wait_key(rejection)
        is_moved = wait_key in moved
        return (REORDERING, SequenceReason.MOVES_ON) if is_moved else by_wait_key[wait_key]

    return tuple(_suspect(rejection, beside) for rejection in rejections)


def _suspect(rejection: Rejection, ahead: Callable[[Rejection], Suspected]) -> Suspicion:
    """Return the suspicion for one rejection; `ahead` judges one that is above the last sequence."""
    phase = Phase.SUSPECTED
    if rejection.form is SequenceForm.EARLIEST_SEEN:
        suspected, phase = (REORDERING, SequenceReason.EARLIEST_SEEN), Phase.CONFIRMED
    elif is_behind(rejection):
        suspected = SequenceClass.STALE_RETRY, SequenceReason.BEHIND
    else:
        suspected = ahead(rejection)
    class_, reason = suspected
    return Suspicion(class_=class_, phase=phase, reason=reason, rejection=rejection)


def unresolved_with(rejection: Rejection, among: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Return the rejections of batches that waited for the same missing batch."""
    return tuple(other for other in among if _wait_key(other) == _wait_key(rejection))


def times_rejected(rejections: Iterable[Rejection]) -> int:
    """Return how often the same batch was rejected, given rejections with the same sequences.

    After an epoch bump sequences begin at 0 again, and not every line has the epoch: a batch is the same
    only where the producer's last entry in the log is the same.
    """
    counts = Counter[int | None]()
    for rejection in rejections:
        counts[_place(rejection)] += rejection.count
    return max(counts.values(), default=0)


def is_start(rejection: Rejection) -> bool:
    """Whether the line has the batch's offset, and the broker had nothing of its epoch before it."""
    is_known = rejection.offset is not None and rejection.form is not SequenceForm.EARLIEST_SEEN
    is_new_epoch = rejection.form is SequenceForm.NEW_EPOCH
    return is_known and not is_new_epoch and last_sequence(rejection) == NO_BATCH


def _wait_key(rejection: Rejection) -> _WaitKey:
    """Return the key shared by rejections of batches that waited for the same missing batch."""
    place = _place(rejection) if is_start(rejection) else None
    return str(rejection.form), rejection.producer_epoch, last_sequence(rejection), place


def _place(rejection: Rejection) -> int | None:
    """Return the offset of the producer's last entry; until it is resolved, that of the rejected batch."""
    entries = [
        entry.last_offset for entry in (rejection.before, rejection.marker) if entry is not None
    ]
    return max(entries, default=rejection.offset)


def _of_group(beside: Sequence[Rejection], largest_batch: int | None) -> Suspected:
    """Return class and reason for the rejections that waited for one batch, by the smallest gap.

    Batches with larger gaps were sent after the nearest one had been rejected already.
    """
    gaps = [gap_of(rejection) or 0 for rejection in beside]
    gap = min(gaps)
    nearest = [rejection for rejection, own in zip(beside, gaps, strict=True) if own == gap]
    if times_rejected(nearest) >= REPEATS:
        return SequenceClass.LOSS, SequenceReason.SAME_AGAIN
    is_small = gap <= BEFORE_IN_FLIGHT * records_per_batch(beside, largest_batch)
    if is_start(nearest[0]) and (is_small or largest_batch is None):
        return REORDERING, SequenceReason.TRANSACTION_START
    if is_small:
        return REORDERING, SequenceReason.SMALL_GAP
    return SequenceClass.LOSS, SequenceReason.LARGE_GAP


def _list_moved_on(unchanged: Iterable[_WaitKey]) -> set[_WaitKey]:
    """Return the keys whose last sequence was passed later: another one of the epoch is ahead of it."""
    by_epoch: dict[tuple[str, int | None], list[int]] = {}
    for form, epoch, last, place in unchanged:
        if form == SequenceForm.OUT_OF_ORDER and place is None:
            by_epoch.setdefault((form, epoch), []).append(last)
    moved: set[_WaitKey] = set()
    for (form, epoch), sequences in by_epoch.items():
        ascending = sorted(sequences)
        for last, later in zip(ascending, [*ascending[1:], ascending[0]], strict=True):
            if is_ahead(later, of=last):
                moved.add((form, epoch, last, None))
    return moved


def records_per_batch(beside: Sequence[Rejection], largest_batch: int | None = None) -> int:
    """Return the maximum of records per batch, as far as known; 1 where nothing is known.

    Batches in flight together follow each other: the smallest step between two of them is the size of
    one.
    """
    if largest_batch is not None:
        return max(largest_batch, 1)
    if len(beside) == 1:
        return 1
    gaps = sorted({gap_of(x) or 0 for x in beside})
    return min((later - earlier for earlier, later in pairwise(gaps)), default=1)


def list_restarted_epochs(rejections: Iterable[Rejection]) -> set[int | None]:
    """Return the producer epochs after which several newer ones began above 0 and none was accepted.

    Where the broker had accepted the first of them, a batch was only overtaken at its start.
    """
    begun: dict[int | None, set[int]] = {}
    for rejection in rejections:
        if rejection.form is SequenceForm.NEW_EPOCH and rejection.producer_epoch is not None:
            begun.setdefault(rejection.current_epoch, set()).add(rejection.producer_epoch)
    return {current for current, epochs in begun.items() if len(epochs) > 1}


def expected_sequence(rejection: Rejection) -> int:
    """Return the sequence that the broker expected."""
    if rejection.form is SequenceForm.EARLIEST_SEEN:
        return rejection.current_sequence or 0
    return (last_sequence(rejection) + 1) % SEQUENCES


def last_sequence(rejection: Rejection) -> int:
    """Return the last sequence that the broker has of the producer epoch, -1 where it has none."""
    if rejection.form is SequenceForm.OUT_OF_ORDER and rejection.current_sequence is not None:
        return rejection.current_sequence
    return NO_BATCH


def gap_of(rejection: Rejection) -> int | None:
    """Return how many records are missing before the rejected batch; None: it is behind."""
    last = last_sequence(rejection)
    if last != NO_BATCH and not is_ahead(rejection.incoming_sequence, of=last):
        return None
    is_earliest = rejection.form is SequenceForm.EARLIEST_SEEN
    expected = expected_sequence(rejection) if is_earliest else last + 1
    return (rejection.incoming_sequence - expected) % SEQUENCES


def is_behind(rejection: Rejection) -> bool:
    """Whether the rejected batch is not above the last sequence: it was appended already."""
    last = last_sequence(rejection)
    return last != NO_BATCH and not is_ahead(rejection.incoming_sequence, of=last)


def is_ahead(sequence: int, *, of: int) -> bool:
    """Whether a sequence comes after another one, by less than half of the sequence space."""
    return 0 < (sequence - of) % SEQUENCES < SEQUENCES // 2
