"""What the numbers of rejected batches say by themselves, without any cluster.

Sequences count records, are int32 and go from 2^31-1 on to 0, so that they are compared by their
distance. A producer has at most five batches in flight, so that at most four may be missing before
one that arrives too early; how many records a batch has is taken from what is known. The numbers
prove nothing, but for one form in which the broker itself says that it is a reordering.
Source: KIP-98; `ProducerAppendInfo.checkSequence` of Kafka 1.1 to 4.x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from rules.facts.broker_log import SequenceForm, SequenceRejected
from rules.facts.rejections import SEQUENCES, Rejection, distinct, rejection_of
from rules.facts.sequence_verdicts import Phase, SequenceClass, SequenceReason

BEFORE_IN_FLIGHT: Final = 4  # batches: five in flight, of which the last one arrived
REPEATS: Final = 3  # so often the same batch is rejected while a reordering heals in milliseconds
NO_BATCH: Final = -1  # the last sequence of an epoch of which the broker has no batch

REORDERING: Final = SequenceClass.REORDERING

# Form, producer epoch, last sequence; at the start of a transaction also where the producer stood.
_Stand: TypeAlias = tuple[str, int | None, int, int | None]

# From the worst on: what is said of several rejections is the worst that is said of one.
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
    """What the numbers alone say, and of which rejection they say it."""

    class_: SequenceClass
    phase: Phase
    reason: SequenceReason
    rejection: Rejection

    @property
    def gap(self) -> int | None:
        """Return how many records are missing before the rejected batch; None: none."""
        return gap_of(self.rejection)


def by_numbers(
    rejections: Iterable[SequenceRejected], largest_batch: int | None = None
) -> Suspicion:
    """Return what rejections of one producer on one partition say; there has to be one.

    `largest_batch` is how many records the partition's batches are known to have at most.
    """
    return suspicion_of(distinct(rejection_of(event) for event in rejections), largest_batch)


def suspicion_of(rejections: Sequence[Rejection], largest_batch: int | None = None) -> Suspicion:
    """Return the worst that the numbers of distinct rejections say; there has to be one."""
    return worst(suspicions_of(rejections, largest_batch))


def worst(suspicions: Iterable[Suspicion]) -> Suspicion:
    """Return the worst of some suspicions; of equal ones the first, by its smallest gap."""
    return min(
        suspicions,
        key=lambda one: (RANK.index(one.class_), one.rejection.first_us or 0, one.gap or 0),
    )


def suspicions_of(
    rejections: Sequence[Rejection], largest_batch: int | None = None
) -> tuple[Suspicion, ...]:
    """Return what the numbers of each rejection say, seen beside the others of its producer."""
    if len(rejections) == 1:  # nearly all of them, when very many producers are rejected at once
        return (_alone(rejections[0], largest_batch),)
    groups: dict[_Stand, list[Rejection]] = {}
    for rejection in rejections:
        if not is_behind(rejection):
            groups.setdefault(_stand(rejection), []).append(rejection)
    by_stand = {stand: _of_group(beside, largest_batch) for stand, beside in groups.items()}
    restarted, moved = restarting_from(rejections), _moved_on(groups)
    suspicions: list[Suspicion] = []
    for rejection in rejections:
        stand, phase = _stand(rejection), Phase.SUSPECTED
        if rejection.form is SequenceForm.EARLIEST_SEEN:
            said, phase = (REORDERING, SequenceReason.EARLIEST_SEEN), Phase.CONFIRMED
        elif is_behind(rejection):
            said = SequenceClass.STALE_RETRY, SequenceReason.BEHIND
        elif rejection.form is SequenceForm.NEW_EPOCH and rejection.current_epoch in restarted:
            said = SequenceClass.SEQUENCE_RESTART, SequenceReason.EPOCHS_ABOVE_ZERO
        else:
            said = (REORDERING, SequenceReason.MOVES_ON) if stand in moved else by_stand[stand]
        class_, reason = said
        suspicions.append(Suspicion(class_=class_, phase=phase, reason=reason, rejection=rejection))
    return tuple(suspicions)


def _alone(rejection: Rejection, largest_batch: int | None) -> Suspicion:
    """Return what the numbers of a producer's only rejection say."""
    phase = Phase.SUSPECTED
    if rejection.form is SequenceForm.EARLIEST_SEEN:
        said, phase = (REORDERING, SequenceReason.EARLIEST_SEEN), Phase.CONFIRMED
    elif is_behind(rejection):
        said = SequenceClass.STALE_RETRY, SequenceReason.BEHIND
    else:
        said = _of_group((rejection,), largest_batch)
    class_, reason = said
    return Suspicion(class_=class_, phase=phase, reason=reason, rejection=rejection)


def unresolved_with(rejection: Rejection, among: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Return the rejections of batches that waited for the same one."""
    return tuple(one for one in among if _stand(one) == _stand(rejection))


def times_rejected(rejections: Iterable[Rejection]) -> int:
    """Return how often the same batch was rejected, of rejections with the same sequences.

    Every transaction begins with sequence 0 again, and the line tells no epoch: a batch is the same
    only where its producer stood at the same place in the log.
    """
    counts = Counter[int | None]()
    for rejection in rejections:
        counts[_place(rejection)] += rejection.count
    return max(counts.values(), default=0)


def is_start(rejection: Rejection) -> bool:
    """Whether the broker had a place for the batch, and nothing of its transaction before it."""
    is_known = rejection.offset is not None and rejection.form is not SequenceForm.EARLIEST_SEEN
    is_new_epoch = rejection.form is SequenceForm.NEW_EPOCH
    return is_known and not is_new_epoch and last_sequence(rejection) == NO_BATCH


def _stand(rejection: Rejection) -> _Stand:
    """Return what the rejections of batches have in common that waited for the same one."""
    place = _place(rejection) if is_start(rejection) else None
    return str(rejection.form), rejection.producer_epoch, last_sequence(rejection), place


def _place(rejection: Rejection) -> int | None:
    """Return where the producer's last entry is; until that is resolved, where the batch belonged."""
    entries = [one.last_offset for one in (rejection.before, rejection.marker) if one is not None]
    return max(entries, default=rejection.offset)


def _of_group(
    beside: Sequence[Rejection], largest_batch: int | None
) -> tuple[SequenceClass, SequenceReason]:
    """Say what the rejections that waited for one batch tell; the nearest one tells most.

    Those behind it were sent when the nearer ones had been rejected already.
    """
    gaps = [gap_of(one) or 0 for one in beside]
    gap = min(gaps)
    nearest = [one for one, own in zip(beside, gaps, strict=True) if own == gap]
    if times_rejected(nearest) >= REPEATS:
        return SequenceClass.LOSS, SequenceReason.SAME_AGAIN
    is_small = gap <= BEFORE_IN_FLIGHT * records_per_batch(beside, largest_batch)
    if is_start(nearest[0]) and (is_small or largest_batch is None):
        return REORDERING, SequenceReason.TRANSACTION_START
    if is_small:
        return REORDERING, SequenceReason.SMALL_GAP
    return SequenceClass.LOSS, SequenceReason.LARGE_GAP


def _moved_on(unchanged: Iterable[_Stand]) -> set[_Stand]:
    """Return those whose last sequence was not the end of its epoch: another one is ahead of it."""
    by_epoch: dict[tuple[str, int | None], list[int]] = {}
    for form, epoch, last, place in unchanged:
        if form == SequenceForm.OUT_OF_ORDER and place is None:
            by_epoch.setdefault((form, epoch), []).append(last)
    moved: set[_Stand] = set()
    for (form, epoch), found in by_epoch.items():
        known = sorted(found)
        for last, later in zip(known, [*known[1:], known[0]], strict=True):
            if is_ahead(later, of=last):
                moved.add((form, epoch, last, None))
    return moved


def records_per_batch(beside: Sequence[Rejection], largest_batch: int | None = None) -> int:
    """Return how many records a batch has at most, as far as is known; one where nothing is.

    Batches that were in flight together follow each other: the smallest step between two of them is
    the size of one.
    """
    if largest_batch is not None:
        return max(largest_batch, 1)
    if len(beside) == 1:
        return 1
    gaps = sorted({gap_of(one) or 0 for one in beside})
    return min((later - earlier for earlier, later in pairwise(gaps)), default=1)


def restarting_from(rejections: Iterable[Rejection]) -> set[int | None]:
    """Return the producer epochs after which several newer ones began above 0, and none was taken.

    Where the broker had taken the one before, a batch was only overtaken at its start.
    """
    begun: dict[int | None, set[int]] = {}
    for rejection in rejections:
        if rejection.form is SequenceForm.NEW_EPOCH and rejection.producer_epoch is not None:
            begun.setdefault(rejection.current_epoch, set()).add(rejection.producer_epoch)
    return {current for current, epochs in begun.items() if len(epochs) > 1}


# ------------------------------------------------------------------ arithmetic
def expected_sequence(rejection: Rejection) -> int:
    """Return the sequence that the broker waited for."""
    if rejection.form is SequenceForm.EARLIEST_SEEN:
        return rejection.current_sequence or 0
    return (last_sequence(rejection) + 1) % SEQUENCES


def last_sequence(rejection: Rejection) -> int:
    """Return the last sequence of the epoch that the broker has, -1 where it has none of it."""
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
    """Whether the rejected batch is not above the last sequence: it was appended before."""
    last = last_sequence(rejection)
    return last != NO_BATCH and not is_ahead(rejection.incoming_sequence, of=last)


def is_ahead(sequence: int, *, of: int) -> bool:
    """Whether a sequence comes after another one: by up to half of all that there are."""
    return 0 < (sequence - of) % SEQUENCES < SEQUENCES // 2
