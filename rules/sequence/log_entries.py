"""What the leader's log shows of a producer around the offsets at which its batches were refused.

The offset of a refused batch was the end of the log then, so that the last batch of the producer
below it is the one with the last sequence, and the first from there on is what it sent next. Markers
have no sequences: one that a new leader wrote says nothing of what was sent before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.broker_log import SequenceForm
from rules.facts.changed import changed
from rules.facts.refusals import LogEntry, Refusal
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.numbers import NO_BATCH, is_behind, last_sequence


def entries_of(found: BatchesOf) -> tuple[LogEntry, ...]:
    """Return batches and markers of one producer, ascending by offset."""
    entries = [*map(_of_batch, found.batches), *map(_of_marker, found.markers)]
    return tuple(sorted(entries, key=lambda entry: entry.base_offset))


def looked_up(refusals: Iterable[Refusal], found: BatchesOf) -> tuple[Refusal, ...]:
    """Return the refusals with what was found around each that is not settled yet."""
    entries = entries_of(found)
    return tuple(
        refusal if refusal.is_settled else _looked_up(refusal, entries, found)
        for refusal in refusals
    )


def reaches(refusals: Sequence[Refusal], found: BatchesOf) -> bool:
    """Whether the log was looked through around every offset at which a batch was refused."""
    offsets = [one.offset for one in refusals if not one.is_settled and one.offset is not None]
    if found.looked_from < 0 or not offsets:
        return found.looked_from >= 0
    return found.looked_from <= min(offsets) and found.looked_to >= max(offsets)


def last_of(refusal: Refusal) -> LogEntry | None:
    """Return the last entry that was appended before what is missing, where it is known.

    Epochs are given out when the markers of older ones are written. Otherwise a marker may be one
    that a new leader wrote for batches that it does not have.
    """
    is_new = refusal.form is SequenceForm.NEW_EPOCH and refusal.marker is not None
    entry = refusal.marker if is_new else refusal.before
    return entry if is_last(entry, refusal) else None


def is_last(entry: LogEntry | None, refusal: Refusal) -> bool:
    """Whether an entry is what the broker had last of the producer when it refused the batch."""
    if entry is None:
        return False
    if refusal.form is SequenceForm.NEW_EPOCH and refusal.producer_epoch is not None:
        return entry.producer_epoch < refusal.producer_epoch
    last = last_sequence(refusal)
    return not entry.is_marker and last in (NO_BATCH, entry.last_sequence)


def producer_epoch_of(refusal: Refusal) -> int | None:
    """Return the producer epoch of a refused batch, where it is known."""
    before, marker = refusal.before, refusal.marker
    if refusal.producer_epoch is not None:
        return refusal.producer_epoch
    if last_sequence(refusal) == NO_BATCH:
        return None if marker is None else marker.producer_epoch
    return before.producer_epoch if before is not None and is_last(before, refusal) else None


def is_of_epoch(refusal: Refusal, producer_epoch: int) -> bool:
    """Whether a refused batch is known to be of a producer epoch that was seen after it.

    Epochs only rise: it is of that one at most, and at least of what was appended before it.
    """
    known = producer_epoch_of(refusal)
    if known is None:
        entries = [one for one in (refusal.before, refusal.marker) if one is not None]
        known = max((one.producer_epoch for one in entries), default=0)
    return producer_epoch == known


def _looked_up(refusal: Refusal, entries: Sequence[LogEntry], found: BatchesOf) -> Refusal:
    if refusal.offset is None:
        return _without_offset(refusal, entries)
    earlier = [entry for entry in entries if entry.last_offset < refusal.offset]
    before = [entry for entry in earlier if not entry.is_marker]
    after = [entry for entry in entries if entry.base_offset >= refusal.offset]
    is_whole = 0 <= found.looked_from <= refusal.offset <= found.looked_to
    last = before[-1] if before else None
    is_known = last is not None and (
        (is_whole and last.base_offset >= found.looked_from)
        or (last_sequence(refusal) != NO_BATCH and is_last(last, refusal))
    )
    return changed(
        refusal,
        before=last if is_known else refusal.before,
        marker=(_marker_after(last, earlier) if is_whole else None) or refusal.marker,
        nothing_from=_nothing_from(refusal, found, is_whole=is_whole, is_known=is_known),
        after=after[0] if after and is_whole else refusal.after,
        came=refusal.came or (is_whole and _has_come(refusal, after)),
        proof=_persisted(refusal, before) or refusal.proof,
    )


def _nothing_from(
    refusal: Refusal, found: BatchesOf, *, is_whole: bool, is_known: bool
) -> int | None:
    """Return from where on nothing was found before the batch; a look that fell short takes nothing back."""
    if is_known:
        return None
    return found.looked_from if is_whole else refusal.nothing_from


def _has_come(refusal: Refusal, after: Sequence[LogEntry]) -> bool:
    """Whether the producer epoch with which the log goes on holds the refused batch."""
    epoch = after[0].producer_epoch if after else None
    sequence = refusal.incoming_sequence
    return any(one.producer_epoch == epoch and one.holds(sequence) for one in after)


def _marker_after(last: LogEntry | None, earlier: Sequence[LogEntry]) -> LogEntry | None:
    """Return the last marker below the refused batch, where no batch came after it."""
    return earlier[-1] if earlier and earlier[-1] is not last else None


def _without_offset(refusal: Refusal, entries: Sequence[LogEntry]) -> Refusal:
    """Find the last sequence by itself; where two batches have it, neither is taken."""
    if last_sequence(refusal) == NO_BATCH:
        return refusal
    places = [place for place, entry in enumerate(entries) if is_last(entry, refusal)]
    if len(places) != 1:
        return refusal
    after = entries[places[0] + 1 : places[0] + 2]
    return replace(refusal, before=entries[places[0]], after=next(iter(after), None))


def _persisted(refusal: Refusal, before: Sequence[LogEntry]) -> SequenceReason | None:
    """Tell that a refused batch is in the log already, of the same producer epoch."""
    if not is_behind(refusal) or not before or not is_last(before[-1], refusal):
        return None
    epoch = before[-1].producer_epoch
    sequence = refusal.incoming_sequence
    there = any(one.holds(sequence) and one.producer_epoch == epoch for one in before)
    return SequenceReason.PERSISTED if there else None


def _of_batch(batch: BatchSeen) -> LogEntry:
    return LogEntry(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        last_sequence=batch.last_sequence,
    )


def _of_marker(marker: MarkerSeen) -> LogEntry:
    return LogEntry(
        base_offset=marker.offset,
        last_offset=marker.offset,
        leader_epoch=marker.leader_epoch,
        producer_epoch=marker.producer_epoch,
        base_sequence=None,
        last_sequence=None,
    )
