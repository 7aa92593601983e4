"""Compares the small files of a log with its batches: snapshots, transaction indexes, leader epochs.

A contradiction is a BREACH only where the batches are all there; compaction, retention and expiry explain others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rules.facts.log_findings import Difference, EndedTransaction, EpochRange, FileDifference
from rules.facts.log_states import (
    EpochCheckpoint,
    ProducerEntry,
    ProducerSnapshot,
    TransactionIndex,
)
from rules.verdict import Verdict

_COMPARED: Final = (
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "coordinator_epoch",
    "current_transaction_start_offset",
)


def compare_snapshot(
    snapshot: ProducerSnapshot,
    entries: Sequence[ProducerEntry],
    *,
    log_start: int,
    is_complete: bool,
) -> Iterator[FileDifference]:
    """Compare a snapshot with the states that the batches before its offset give.

    `is_complete`: no offset is missing in the log from `log_start` on.
    """
    in_log = {entry.producer_id: entry for entry in entries}
    for entry in snapshot.producers:
        other = in_log.pop(entry.producer_id, None)
        why = _difference(entry, other, log_start)
        if why is not None:
            verdict = Verdict.BREACH if is_complete and other is not None else Verdict.UNKNOWN
            yield FileDifference(
                kind=Difference.PRODUCER_STATE, verdict=verdict, path=snapshot.path, why=why
            )
    if in_log:
        yield FileDifference(
            kind=Difference.PRODUCER_MISSING,
            verdict=Verdict.UNKNOWN,
            path=snapshot.path,
            why=f"it lacks {_ids(sorted(in_log))}, which wrote before its offset: the broker had let them expire",
        )


def _difference(entry: ProducerEntry, other: ProducerEntry | None, log_start: int) -> str | None:
    """Return how a snapshot's entry differs from the log's; None: not at all, or it is older than the log."""
    if entry.last_offset is not None and entry.last_offset < log_start:
        return None
    if other is None:
        at = entry.last_offset
        return None if at is None else f"no batch before it is of producer {entry.producer_id}, whose last offset it says is {at}"  # fmt: skip
    words = [
        f"{name} {_word(getattr(entry, name))} and not {_word(getattr(other, name))}"
        for name in _COMPARED
        if getattr(entry, name) != getattr(other, name)
        and not _is_before(entry, other, name, log_start)
    ]
    if not words:
        return None
    return f"of producer {entry.producer_id} it says {', '.join(words)} as the batches do"


def _is_before(entry: ProducerEntry, other: ProducerEntry, name: str, log_start: int) -> bool:
    """Whether the log cannot know the value, because it was written before its start."""
    start = entry.current_transaction_start_offset
    if name == "current_transaction_start_offset":
        return start is not None and start < log_start
    return name == "coordinator_epoch" and other.coordinator_epoch is None


def _word(value: int | None) -> str:
    return "none" if value is None else str(value)


def compare_aborted(
    indexes: Sequence[TransactionIndex],
    aborted: Sequence[EndedTransaction],
    *,
    start: int,
    end: int,
) -> Iterator[FileDifference]:
    """Compare transaction indexes with all the abort markers of the log's offsets [start, end)."""
    if not indexes:
        return
    markers = {(each.producer_id, each.marker_offset): each for each in aborted}
    for index in indexes:
        for entry in index.aborted:
            key = entry.producer_id, entry.last_offset
            marker = markers.pop(key, None)
            if marker is None and start <= entry.last_offset < end:
                why = f"producer {key[0]} has no abort marker at offset {key[1]}"
                yield _of_index(index, Verdict.UNKNOWN, why)
            elif marker is not None and marker.first_offset not in (None, entry.first_offset):
                why = (
                    f"the transaction of producer {key[0]} that was aborted at offset {key[1]} begins at "
                    f"{entry.first_offset} and not at {marker.first_offset} as the batches do"
                )
                yield _of_index(index, Verdict.BREACH, why)
    for (producer_id, offset), marker in markers.items():
        if marker.first_offset is not None:
            why = f"it lacks the transaction of producer {producer_id} that was aborted at offset {offset}"
            yield _of_index(_index_of(indexes, offset), Verdict.UNKNOWN, why)


def _index_of(indexes: Sequence[TransactionIndex], offset: int) -> TransactionIndex:
    return [indexes[0], *(each for each in indexes if each.base_offset <= offset)][-1]


def _of_index(index: TransactionIndex, verdict: Verdict, why: str) -> FileDifference:
    return FileDifference(
        kind=Difference.ABORTED_TRANSACTION, verdict=verdict, path=index.path, why=why
    )


def compare_epochs(
    checkpoint: EpochCheckpoint | None, ranges: Sequence[EpochRange]
) -> Iterator[FileDifference]:
    """Compare the leader epochs that a broker noted with those in the headers of its batches."""
    if checkpoint is None or checkpoint.problems:
        return
    starts = {each.leader_epoch: each.start_offset for each in checkpoint.epochs}
    for before, each in zip([None, *ranges], ranges, strict=False):
        for verdict, why in _epoch_problems(starts, before, each):
            yield FileDifference(
                kind=Difference.LEADER_EPOCH, verdict=verdict, path=checkpoint.path, why=why
            )


def _epoch_problems(
    starts: dict[int, int], before: EpochRange | None, each: EpochRange
) -> Iterator[tuple[Verdict, str]]:
    epoch = each.leader_epoch
    if epoch < 0:
        return  # written by a broker before leader epochs
    if before is not None and epoch < before.leader_epoch:
        yield Verdict.BREACH, f"leader epoch {epoch} has a batch at offset {each.first_offset}, behind epoch {before.leader_epoch}"  # fmt: skip
    start = starts.get(epoch)
    if start is None:
        yield Verdict.UNKNOWN, f"it lacks leader epoch {epoch}, of offsets {each.first_offset} to {each.last_offset}"  # fmt: skip
        return
    later = [offset for other, offset in starts.items() if other > epoch]
    if start > each.first_offset:
        yield Verdict.BREACH, f"leader epoch {epoch} begins at {start}, and a batch of it is at {each.first_offset}"  # fmt: skip
    if later and min(later) <= each.last_offset:
        yield Verdict.BREACH, f"leader epoch {epoch} ends at {min(later)}, and a batch of it reaches {each.last_offset}"  # fmt: skip


def _ids(ids: Sequence[int]) -> str:
    first = ", ".join(map(str, ids[:3]))
    more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
    return f"producer{'s' if len(ids) > 1 else ''} {first}{more}"
