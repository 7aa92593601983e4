"""Follows one partition's log from its first batch to its last, and says what it holds and what it lacks.

Memory is that of its producers, epochs and segments, not of its batches.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rules.facts.column import Int64s
from rules.facts.identity import CONSUMER_OFFSETS
from rules.facts.log_files import CODEC_BITS, BatchBlock, Codec, FileProblem, codec_of
from rules.facts.log_findings import (
    EpochRange,
    FileDifference,
    LogFindings,
    NotIdempotent,
    OffsetGap,
    OffsetGapReason,
    SegmentSummary,
)
from rules.facts.log_folders import PartitionLog, SegmentFile
from rules.facts.log_states import ProducerSnapshot
from rules.log_files.comparing import compare_aborted, compare_epochs, compare_snapshot
from rules.log_files.producers import KEPT, ProducerStates

# The coordinator writes the commits of a transaction there in the producer's name, without its sequences.


class LogAnalysis:
    """Takes segments, their batches and problems in order; `findings` may be read at the end."""

    def __init__(self, log: PartitionLog) -> None:
        """`log` has what else is known of the partition."""
        self._log = log
        is_of_groups = log.name is not None and log.name.topic == CONSUMER_OFFSETS
        self._states = ProducerStates(has_sequences=not is_of_groups)
        self._segments: list[SegmentSummary] = []
        self._epochs: list[EpochRange] = []
        self._gaps: list[OffsetGap] = []
        self._gap_count = 0
        self._differences: list[FileDifference] = []
        self._not_idempotent = NotIdempotent()
        self._start: int | None = None
        self._end: int | None = None
        self._is_damaged = self._is_edge = False  # since the last batch
        self._is_compacted = log.is_cleaned
        self._snapshots = [each for each in log.snapshots if each.is_whole]
        self._compared = 0  # of the snapshots

    def begin_segment(self, segment: SegmentFile) -> None:
        """Go on with another segment."""
        self._is_edge = True
        self._segments.append(_empty(segment))

    def add_problem(self, problem: FileProblem) -> None:
        """Note that something cannot be read between the batches."""
        del problem
        self._is_damaged = True

    def add(self, block: BatchBlock) -> None:
        """Add batches of the segment."""
        if self._start is None:
            self._begin(int(block.base_offset[0]))
        self._segments[-1] = _with(self._segments[-1], block)
        self._is_compacted |= bool(
            (block.record_count < block.last_offset - block.base_offset + 1).any()
        )
        self._add_epochs(block)
        self._note_not_idempotent(block)
        self._states.note_holes(self._find_holes(block))
        self._add_states(block)
        self._end = int(block.last_offset[-1]) + 1
        self._is_damaged = self._is_edge = False

    def _begin(self, first: int) -> None:
        """Start with the snapshot at the log's beginning, from which a broker would start too."""
        self._start = self._end = first
        base = self._segments[0].base_offset
        seeds = [each for each in self._snapshots if each.offset == base]
        self._compared = sum(base is None or each.offset <= base for each in self._snapshots)
        is_whole = base == 0 and first == 0 and not self._is_damaged
        self._states.begin(seeds[0].producers if seeds else (), starts_at_zero=is_whole)
        if base is not None and first > base:
            self._note_hole(base, first)

    def _find_holes(self, block: BatchBlock) -> list[int]:
        """Note the offsets that are missing before and among batches; return the offsets behind them."""
        ends = np.concatenate((block.base_offset[:1], block.last_offset[:-1] + 1))
        if self._end is not None:
            ends[0] = self._end
        rows = np.flatnonzero(block.base_offset > ends)
        for row in rows.tolist():
            if row:
                self._is_damaged = self._is_edge = False
            self._note_hole(int(ends[row]), int(block.base_offset[row]))
        return [int(end) for end in block.base_offset[rows]]

    def _note_hole(self, start: int, end: int) -> None:
        reason = OffsetGapReason.NOT_EXPLAINED
        if self._is_damaged:
            reason = OffsetGapReason.UNREADABLE
        elif self._is_edge:
            reason = OffsetGapReason.BETWEEN_SEGMENTS
        self._gap_count += 1
        if len(self._gaps) < KEPT:
            self._gaps.append(OffsetGap(start=start, end=end, reason=reason))

    def _add_states(self, block: BatchBlock) -> None:
        """Add the block in parts, and compare the states with each snapshot at its offset."""
        first = 0
        while self._compared < len(self._snapshots):
            snapshot = self._snapshots[self._compared]
            if snapshot.offset > int(block.last_offset[-1]):
                break
            row = int(np.searchsorted(block.base_offset, snapshot.offset))
            if row > first:
                self._states.add(block.part(first, row))
            self._compare(snapshot)
            first = row
        self._states.add(block.part(first, len(block)) if first else block)

    def _compare(self, snapshot: ProducerSnapshot) -> None:
        self._compared += 1
        entries = list(self._states.entries())
        self._differences += compare_snapshot(
            snapshot, entries, log_start=self._start or 0, is_complete=not self._gap_count
        )

    def _add_epochs(self, block: BatchBlock) -> None:
        edges = np.flatnonzero(np.diff(block.leader_epoch)) + 1
        starts = [0, *edges.tolist()]
        for first, behind in zip(starts, [*starts[1:], len(block)], strict=True):
            epoch, last = int(block.leader_epoch[first]), int(block.last_offset[behind - 1])
            if self._epochs and self._epochs[-1].leader_epoch == epoch:
                before = self._epochs[-1]
                self._epochs[-1] = replace(
                    before, last_offset=last, batches=before.batches + behind - first
                )
                continue
            self._epochs.append(
                EpochRange(
                    leader_epoch=epoch,
                    first_offset=int(block.base_offset[first]),
                    last_offset=last,
                    batches=behind - first,
                )
            )

    def _note_not_idempotent(self, block: BatchBlock) -> None:
        rows = np.flatnonzero((block.producer_id < 0) & ~block.is_control)
        if not len(rows):
            return
        before = self._not_idempotent
        first = before.first_offset
        self._not_idempotent = NotIdempotent(
            batches=before.batches + len(rows),
            records=before.records + int(block.record_count[rows].sum()),
            first_offset=int(block.base_offset[rows[0]]) if first is None else first,
            last_offset=int(block.last_offset[rows[-1]]),
            last_timestamp_ms=_least(block.max_timestamp_ms[rows[-1:]]),
        )

    def findings(self) -> LogFindings:
        """Return what was found; nothing may be added afterwards."""
        for snapshot in self._snapshots[self._compared :]:
            if snapshot.offset == self._end:  # of an orderly stop
                self._compare(snapshot)
        transactions = tuple(self._states.open_transactions())
        first_open = transactions[0].first_offset if transactions else self._end
        return LogFindings(
            segments=tuple(self._segments),
            log_start_offset=self._start,
            log_end_offset=self._end,
            last_stable_offset=first_open,
            epochs=tuple(self._epochs),
            committed=self._states.committed,
            aborted=self._states.aborted,
            open_transactions=transactions,
            aborted_transactions=tuple(self._states.aborted_transactions),
            producers=tuple(self._states.producers()),
            not_idempotent=self._not_idempotent,
            offset_gaps=tuple(map(self._explained, self._gaps)),
            offset_gap_count=self._gap_count,
            sequence_gaps=tuple(self._states.gaps),
            sequence_gap_count=self._states.gap_count,
            differences=(*self._differences, *self._compare_files()),
            is_compacted=self._is_compacted,
        )

    def _explained(self, gap: OffsetGap) -> OffsetGap:
        """Return a gap with the reason that only the whole log shows."""
        if self._is_compacted and gap.reason is not OffsetGapReason.UNREADABLE:
            return replace(gap, reason=OffsetGapReason.COMPACTED)
        return gap

    def _compare_files(self) -> list[FileDifference]:
        start, end = self._start, self._end
        if start is None or end is None:
            return []
        differences = list(compare_epochs(self._log.epochs, self._epochs))
        if self._states.aborted <= KEPT:
            aborted = self._states.aborted_transactions
            indexes = self._log.transaction_indexes
            differences += compare_aborted(indexes, aborted, start=start, end=end)
        return differences


def _empty(segment: SegmentFile) -> SegmentSummary:
    return SegmentSummary(
        path=segment.path,
        base_offset=segment.base_offset,
        first_offset=None,
        last_offset=None,
        batches=0,
        records=0,
        size=0,
        codecs=frozenset(),
        min_timestamp_ms=None,
        max_timestamp_ms=None,
    )


def _with(summary: SegmentSummary, block: BatchBlock) -> SegmentSummary:
    """Return the summary of a segment with more of its batches."""
    numbers = np.flatnonzero(np.bincount(block.attributes & CODEC_BITS, minlength=CODEC_BITS + 1))
    codecs: set[Codec] = {codec_of(int(number)) for number in numbers}
    first = summary.first_offset
    return replace(
        summary,
        first_offset=int(block.base_offset[0]) if first is None else first,
        last_offset=int(block.last_offset[-1]),
        batches=summary.batches + len(block),
        records=summary.records + int(block.record_count[~block.is_control].sum()),
        size=summary.size + int(block.size.sum()),
        codecs=summary.codecs | codecs,
        min_timestamp_ms=_smaller(summary.min_timestamp_ms, _least(block.first_timestamp_ms)),
        max_timestamp_ms=_larger(summary.max_timestamp_ms, int(block.max_timestamp_ms.max())),
    )


def _least(times: Int64s) -> int | None:
    """Return the earliest of times in milliseconds; None if no batch has one."""
    present = times[times >= 0]
    return int(present.min()) if len(present) else None


def _smaller(time: int | None, other: int | None) -> int | None:
    if time is None or other is None:
        return time if other is None else other
    return min(time, other)


def _larger(time: int | None, other: int) -> int | None:
    if other < 0:
        return time
    return other if time is None else max(time, other)
