"""Finds a producer's entries in the leader's log around the offsets at which its batches were rejected.

The offset of a rejected batch was the end of the log then: the producer's last batch below it has the
last sequence, and the first batch from there on is what it sent next. Markers have no sequences: one
that a new leader wrote says nothing of what was sent before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.broker_log import SequenceForm
from rules.facts.column import replace_fields
from rules.facts.rejections import LogEntry, Rejection
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.numbers import NO_BATCH, is_behind, last_sequence


def entries_of(scanned: BatchesOf) -> tuple[LogEntry, ...]:
    """Return batches and markers of one producer, ascending by offset."""
    entries = [*map(_of_batch, scanned.batches), *map(_of_marker, scanned.markers)]
    return tuple(sorted(entries, key=lambda entry: entry.base_offset))


def resolve_rejections(
    rejections: Iterable[Rejection], scanned: BatchesOf
) -> tuple[Rejection, ...]:
    """Add the log entries around each rejection that is not settled yet."""
    entries = entries_of(scanned)
    return tuple(
        rejection if rejection.is_settled else _resolve_rejection(rejection, entries, scanned)
        for rejection in rejections
    )


def covers_rejections(rejections: Sequence[Rejection], scanned: BatchesOf) -> bool:
    """Whether the log was scanned around every offset at which a batch was rejected."""
    offsets = [
        rejection.offset
        for rejection in rejections
        if not rejection.is_settled and rejection.offset is not None
    ]
    if scanned.scanned_from < 0 or not offsets:
        return scanned.scanned_from >= 0
    return scanned.scanned_from <= min(offsets) and scanned.scanned_to >= max(offsets)


def last_of(rejection: Rejection) -> LogEntry | None:
    """Return the last entry that was appended before the missing batches, where it is known.

    A marker counts only for the form `new_epoch`: a producer gets its epoch when the markers of the
    older one are written. Otherwise a new leader may have written it for batches that it does not have.
    """
    is_new = rejection.form is SequenceForm.NEW_EPOCH and rejection.marker is not None
    entry = rejection.marker if is_new else rejection.before
    return entry if is_last(entry, rejection) else None


def is_last(entry: LogEntry | None, rejection: Rejection) -> bool:
    """Whether an entry was the producer's last one when the broker rejected the batch."""
    if entry is None:
        return False
    if rejection.form is SequenceForm.NEW_EPOCH and rejection.producer_epoch is not None:
        return entry.producer_epoch < rejection.producer_epoch
    last = last_sequence(rejection)
    return not entry.is_marker and last in (NO_BATCH, entry.last_sequence)


def producer_epoch_of(rejection: Rejection) -> int | None:
    """Return the producer epoch of a rejected batch, where it is known."""
    before, marker = rejection.before, rejection.marker
    if rejection.producer_epoch is not None:
        return rejection.producer_epoch
    if last_sequence(rejection) == NO_BATCH:
        return None if marker is None else marker.producer_epoch
    return before.producer_epoch if before is not None and is_last(before, rejection) else None


def is_of_epoch(rejection: Rejection, producer_epoch: int) -> bool:
    """Whether a rejected batch is known to be of a producer epoch that was seen after it.

    Epochs only rise: the batch has at most that epoch, and at least the one appended before it.
    """
    rejected_epoch = producer_epoch_of(rejection)
    if rejected_epoch is None:
        entries = [entry for entry in (rejection.before, rejection.marker) if entry is not None]
        rejected_epoch = max((entry.producer_epoch for entry in entries), default=0)
    return producer_epoch == rejected_epoch


def _resolve_rejection(
    rejection: Rejection, entries: Sequence[LogEntry], scanned: BatchesOf
) -> Rejection:
    if rejection.offset is None:
        return _resolve_without_offset(rejection, entries)
    earlier = [entry for entry in entries if entry.last_offset < rejection.offset]
    before = [entry for entry in earlier if not entry.is_marker]
    after = [entry for entry in entries if entry.base_offset >= rejection.offset]
    is_whole = 0 <= scanned.scanned_from <= rejection.offset <= scanned.scanned_to
    last = before[-1] if before else None
    is_known = last is not None and (
        (is_whole and last.base_offset >= scanned.scanned_from)
        or (last_sequence(rejection) != NO_BATCH and is_last(last, rejection))
    )
    return replace_fields(
        rejection,
        before=last if is_known else rejection.before,
        marker=(_marker_after(last, earlier) if is_whole else None) or rejection.marker,
        nothing_from=_nothing_from(rejection, scanned, is_whole=is_whole, is_known=is_known),
        after=after[0] if after and is_whole else rejection.after,
        came=rejection.came or (is_whole and _has_come(rejection, after)),
        proof=_find_persisted(rejection, before) or rejection.proof,
    )


def _nothing_from(
    rejection: Rejection, scanned: BatchesOf, *, is_whole: bool, is_known: bool
) -> int | None:
    """Return the offset from which on the log has no batch before the rejected one.

    A scan that fell short leaves the earlier result.
    """
    if is_known:
        return None
    return scanned.scanned_from if is_whole else rejection.nothing_from


def _has_come(rejection: Rejection, after: Sequence[LogEntry]) -> bool:
    """Whether the rejected batch is in the log, in the producer epoch of the next entry."""
    epoch = after[0].producer_epoch if after else None
    sequence = rejection.incoming_sequence
    return any(entry.producer_epoch == epoch and entry.holds(sequence) for entry in after)


def _marker_after(last: LogEntry | None, earlier: Sequence[LogEntry]) -> LogEntry | None:
    """Return the last marker below the rejected batch, where no batch follows it."""
    return earlier[-1] if earlier and earlier[-1] is not last else None


def _resolve_without_offset(rejection: Rejection, entries: Sequence[LogEntry]) -> Rejection:
    """Find the batch with the last sequence without an offset; where two have it, use neither."""
    if last_sequence(rejection) == NO_BATCH:
        return rejection
    places = [place for place, entry in enumerate(entries) if is_last(entry, rejection)]
    if len(places) != 1:
        return rejection
    after = entries[places[0] + 1 : places[0] + 2]
    return replace(rejection, before=entries[places[0]], after=next(iter(after), None))


def _find_persisted(rejection: Rejection, before: Sequence[LogEntry]) -> SequenceReason | None:
    """Return PERSISTED if the rejected batch is already in the log, in the same producer epoch."""
    if not is_behind(rejection) or not before or not is_last(before[-1], rejection):
        return None
    epoch = before[-1].producer_epoch
    sequence = rejection.incoming_sequence
    there = any(entry.holds(sequence) and entry.producer_epoch == epoch for entry in before)
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
