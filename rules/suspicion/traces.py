"""Where a producer's sequence does not go on in the log, by the headers of its batches.

A leader appends only what follows, so that a gap in the log itself is rare: a producer whose records were
lost, or that gave some up, begins a newer epoch at sequence 0 (without the marker that ends a
transaction), or falls silent. In one leader epoch that is harmless. Over a leader change it is where records
would be missing, and a producer that goes on without a gap over it has lost none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rules.facts.batches import BatchesOf, BatchSeen
from rules.facts.rejections import SEQUENCES
from rules.facts.suspicions import BreakKind, SequenceBreak


def list_breaks(batches: BatchesOf, change_epoch: int | None) -> tuple[SequenceBreak, ...]:
    """Return the places at which a producer's sequence does not go on, in the order of the log.

    `change_epoch` is the leader epoch that a change began: a producer that wrote before it and not since is
    silent. None: no change is searched for.
    """
    written = batches.batches
    if not written:
        return ()
    breaks = [*_first_break(batches, written[0], change_epoch), *_breaks_between(batches)]
    last = written[-1]
    is_silent = change_epoch is not None and last.leader_epoch < change_epoch
    if is_silent and not _is_ended(batches, last):
        breaks.append(_break(batches.producer_id, BreakKind.SILENT, last, None))
    return tuple(breaks)


def is_continued(batches: BatchesOf, change_epoch: int) -> bool:
    """Whether a producer wrote before and after a change, and goes on without a gap over it."""
    epochs = [batch.leader_epoch for batch in batches.batches]
    is_on_both = any(epoch < change_epoch for epoch in epochs) and any(
        epoch >= change_epoch for epoch in epochs
    )
    return is_on_both and not any(
        each.is_over_change for each in list_breaks(batches, change_epoch)
    )


def _breaks_between(batches: BatchesOf) -> Iterator[SequenceBreak]:
    for before, after in zip(batches.batches, batches.batches[1:], strict=False):
        if after.producer_epoch == before.producer_epoch:
            if after.base_sequence != (before.last_sequence + 1) % SEQUENCES:
                yield _break(batches.producer_id, BreakKind.JUMP, before, after)
        elif not _has_marker(batches, before.last_offset, after.base_offset):
            yield _break(batches.producer_id, BreakKind.NEW_EPOCH, before, after)


def _first_break(
    batches: BatchesOf, first: BatchSeen, change_epoch: int | None
) -> Iterable[SequenceBreak]:
    """Return a break where the log has nothing before a batch that does not begin at sequence 0.

    Only where the log was scanned from before the change on: a producer that wrote before the scan began
    has its earlier batches there.
    """
    is_after = change_epoch is not None and first.leader_epoch >= change_epoch
    is_whole = batches.scanned_from == 0
    if is_after and is_whole and first.base_sequence > 0:
        return (_break(batches.producer_id, BreakKind.STARTS_LATE, None, first),)
    return ()


def _has_marker(batches: BatchesOf, after: int, before: int) -> bool:
    """Whether a transaction of the producer ended between two offsets: the next one has a newer epoch."""
    return any(after < marker.offset < before for marker in batches.markers)


def _is_ended(batches: BatchesOf, last: BatchSeen) -> bool:
    return any(marker.offset > last.last_offset for marker in batches.markers)


def _break(
    producer_id: int, kind: BreakKind, before: BatchSeen | None, after: BatchSeen | None
) -> SequenceBreak:
    return SequenceBreak(
        producer_id=producer_id,
        kind=kind,
        last_sequence=None if before is None else before.last_sequence,
        last_epoch=None if before is None else before.producer_epoch,
        last_leader_epoch=None if before is None else before.leader_epoch,
        next_offset=None if after is None else after.base_offset,
        next_sequence=None if after is None else after.base_sequence,
        next_epoch=None if after is None else after.producer_epoch,
        next_leader_epoch=None if after is None else after.leader_epoch,
    )
