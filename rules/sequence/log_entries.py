"""What the leader's log shows of a producer around the offsets at which its batches were refused.

The offset of a refused batch was the end of the log then, so that the last entry of the producer
below it is the one with the last sequence, and the first from there on is what it sent next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.broker_log import SequenceForm
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
    """Whether the log was looked through up to every offset at which a batch was refused."""
    offsets = [one.offset for one in refusals if not one.is_settled and one.offset is not None]
    return found.looked_from >= 0 and found.looked_to >= max(offsets, default=0)


def is_last(entry: LogEntry | None, refusal: Refusal) -> bool:
    """Whether an entry is what the broker had last of the producer when it refused the batch."""
    if entry is None:
        return False
    last = last_sequence(refusal)
    if refusal.form is SequenceForm.NEW_EPOCH and refusal.producer_epoch is not None:
        return entry.producer_epoch < refusal.producer_epoch
    return last in (NO_BATCH, entry.last_sequence)


def _looked_up(refusal: Refusal, entries: Sequence[LogEntry], found: BatchesOf) -> Refusal:
    if refusal.offset is None:
        return _without_offset(refusal, entries)
    before = [entry for entry in entries if entry.last_offset < refusal.offset]
    after = [entry for entry in entries if entry.base_offset >= refusal.offset]
    is_whole = 0 <= found.looked_from <= refusal.offset <= found.looked_to
    last = before[-1] if before else None
    is_known = last is not None and (
        (is_whole and last.base_offset >= found.looked_from)
        or (last_sequence(refusal) != NO_BATCH and is_last(last, refusal))
    )
    return replace(
        refusal,
        before=last if is_known else refusal.before,
        nothing_from=found.looked_from if is_whole and not is_known else None,
        after=after[0] if after and is_whole else refusal.after,
        proof=_persisted(refusal, before) or refusal.proof,
    )


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
