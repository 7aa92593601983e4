"""Follows the state of every producer through a log, as a broker does when it loads one.

A million batches pass here, so that the loop is plain and its state is mutable. Sequences are compared with what the
broker would expect: they begin at 0 in a new epoch, and 0 follows 2^31-1. Where the log lacks what came before, a gap is
UNKNOWN.
Source: ProducerAppendInfo and ProducerStateEntry of the broker (KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from rules.facts.log_files import CONTROL_BIT, NONE, TRANSACTIONAL_BIT, BatchBlock, ControlType
from rules.facts.log_findings import (
    EndedTransaction,
    OpenTransaction,
    ProducerInLog,
    SequenceGap,
    SequenceGapReason,
)
from rules.facts.log_states import ProducerEntry
from rules.facts.rejections import SEQUENCES

KEPT: Final = 1000  # gaps and aborted transactions that are kept; the others are counted
_AHEAD: Final = SEQUENCES // 2  # a difference above it is one to the rear


class _State:
    """One producer; NONE is absence here."""

    __slots__ = (
        "batches", "coordinator_epoch", "delta", "epoch", "first_offset", "is_sequence_known", "last_offset",
        "last_seen", "last_sequence", "open_from", "records", "timestamp_ms", "transactional",
    )  # fmt: skip

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_sequence = self.last_offset = self.first_offset = self.open_from = NONE
        self.last_seen = self.timestamp_ms = self.coordinator_epoch = NONE
        self.delta = self.batches = self.records = self.transactional = 0
        self.is_sequence_known = False  # whether what is to follow is known

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.last_sequence, self.last_offset, self.delta = epoch, NONE, NONE, 0
            self.is_sequence_known = True  # it begins at 0


class ProducerStates:
    """The states of all producers behind the batches that were added."""

    def __init__(self, *, has_sequences: bool = True) -> None:
        """`has_sequences`: batches are of producers; those that a coordinator writes for them all begin at 0."""
        self._has_sequences = has_sequences
        self._states: dict[int, _State] = {}
        self._starts_at_zero = False
        self._hole_ends: list[int] = []
        self.committed = self.aborted = 0
        self.aborted_transactions: list[EndedTransaction] = []
        self.gaps: list[SequenceGap] = []
        self.gap_count = 0

    def begin(self, entries: Sequence[ProducerEntry], *, starts_at_zero: bool) -> None:
        """Start from a snapshot at the log's beginning; `starts_at_zero`: the log has all its offsets."""
        self._starts_at_zero = starts_at_zero
        for entry in entries:
            state = self._states[entry.producer_id] = _State(entry.producer_epoch)
            state.last_sequence = _or_none(entry.last_sequence)
            state.last_offset = state.last_seen = _or_none(entry.last_offset)
            state.delta = entry.offset_delta
            state.timestamp_ms = _or_none(entry.timestamp_ms)
            state.coordinator_epoch = _or_none(entry.coordinator_epoch)
            state.open_from = _or_none(entry.current_transaction_start_offset)
            state.is_sequence_known = True

    def note_holes(self, ends: Sequence[int]) -> None:
        """Note the offsets behind what is missing before or among the batches that are added next."""
        self._hole_ends = [*self._hole_ends[-1:], *ends]

    def add(self, block: BatchBlock) -> None:
        """Add batches."""
        states = self._states
        rows = zip(
            block.producer_id.tolist(), block.producer_epoch.tolist(), block.base_sequence.tolist(), block.base_offset.tolist(),
            block.last_offset.tolist(), block.record_count.tolist(), block.attributes.tolist(),
            block.max_timestamp_ms.tolist(), strict=True,
        )  # fmt: skip
        for row, (producer_id, epoch, sequence, base, last, count, attributes, at) in enumerate(
            rows
        ):
            if producer_id < 0:
                continue
            state = states.get(producer_id)
            if state is None:
                state = states[producer_id] = _State(epoch)
            if attributes & CONTROL_BIT:
                self._end(producer_id, state, block, row)
                continue
            if sequence != (state.last_sequence + 1) % SEQUENCES or epoch != state.epoch:
                self._compare(producer_id, state, epoch, sequence, base)
            if epoch != state.epoch:
                state.take_epoch(epoch)
            delta = last - base
            state.last_sequence = (sequence + delta) % SEQUENCES if sequence >= 0 else NONE
            state.last_offset = state.last_seen = last
            state.delta, state.timestamp_ms, state.is_sequence_known = delta, at, True
            state.batches += 1
            state.records += count
            if attributes & TRANSACTIONAL_BIT:
                state.transactional = 1
                if state.open_from < 0:
                    state.open_from = base
            if state.first_offset < 0:
                state.first_offset = base

    def _end(self, producer_id: int, state: _State, block: BatchBlock, row: int) -> None:
        """Take the marker of a transaction."""
        control = block.controls[row]
        if control.type not in (ControlType.COMMIT, ControlType.ABORT):
            return
        is_commit = control.type is ControlType.COMMIT
        epoch, offset = int(block.producer_epoch[row]), int(block.base_offset[row])
        state.take_epoch(epoch)
        if state.first_offset < 0:
            state.first_offset = offset
        state.last_seen, state.transactional = offset, 1
        state.timestamp_ms = int(block.max_timestamp_ms[row])
        state.coordinator_epoch = NONE if control.coordinator_epoch is None else control.coordinator_epoch  # fmt: skip
        if is_commit:
            self.committed += 1
        else:
            self.aborted += 1
            self._keep_aborted(producer_id, state, epoch, offset)
        state.open_from = NONE

    def _keep_aborted(self, producer_id: int, state: _State, epoch: int, offset: int) -> None:
        if len(self.aborted_transactions) >= KEPT:
            return
        self.aborted_transactions.append(
            EndedTransaction(
                producer_id=producer_id,
                producer_epoch=epoch,
                is_commit=False,
                first_offset=_absent(state.open_from),
                marker_offset=offset,
                coordinator_epoch=_absent(state.coordinator_epoch),
            )
        )

    def _compare(
        self, producer_id: int, state: _State, epoch: int, sequence: int, base: int
    ) -> None:
        """Note a gap unless the batch may follow."""
        if sequence < 0 or not self._has_sequences:
            return
        is_new_epoch = epoch > state.epoch
        expected = 0 if is_new_epoch else (state.last_sequence + 1) % SEQUENCES
        if sequence == expected and epoch >= state.epoch:
            return
        reason = self._reason(state, epoch, sequence, expected=expected, base=base)
        self.gap_count += 1
        if len(self.gaps) >= KEPT:
            return
        self.gaps.append(
            SequenceGap(
                producer_id=producer_id,
                producer_epoch=epoch,
                expected_sequence=expected,
                base_sequence=sequence,
                after_offset=_absent(state.last_seen),
                offset=base,
                reason=reason,
            )
        )

    def _reason(
        self, state: _State, epoch: int, sequence: int, *, expected: int, base: int
    ) -> SequenceGapReason:
        is_first = not state.is_sequence_known and epoch == state.epoch
        if self._last_hole(base) > state.last_seen:
            return SequenceGapReason.OFFSETS_MISSING_BETWEEN
        if is_first:
            is_whole = self._starts_at_zero
            return SequenceGapReason.STARTS_ABOVE_ZERO if is_whole else SequenceGapReason.LOG_STARTS_LATER  # fmt: skip
        if epoch < state.epoch:
            return SequenceGapReason.EPOCH_WENT_BACK
        if (sequence - expected) % SEQUENCES < _AHEAD:
            return SequenceGapReason.SEQUENCES_MISSING
        return SequenceGapReason.SEQUENCE_RESTARTED if sequence == 0 else SequenceGapReason.SEQUENCES_REPEATED  # fmt: skip

    def _last_hole(self, base: int) -> int:
        """Return the offset behind the last missing ones at or before a batch; NONE: none are missing."""
        place = bisect_right(self._hole_ends, base)
        return self._hole_ends[place - 1] if place else NONE

    def entries(self) -> Iterator[ProducerEntry]:
        """Yield the states, ascending by producer id."""
        for producer_id in sorted(self._states):
            yield _entry(producer_id, self._states[producer_id])

    def producers(self) -> Iterator[ProducerInLog]:
        """Yield the states with what each producer wrote."""
        for producer_id in sorted(self._states):
            state = self._states[producer_id]
            yield ProducerInLog(
                entry=_entry(producer_id, state),
                first_offset=_absent(state.first_offset),
                batches=state.batches,
                records=state.records,
                is_transactional=bool(state.transactional),
            )

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the transactions without a marker, ascending by first offset."""
        transactions = [
            OpenTransaction(
                producer_id=producer_id,
                producer_epoch=state.epoch,
                first_offset=state.open_from,
                last_offset=max(state.last_offset, state.open_from),
                last_timestamp_ms=_absent(state.timestamp_ms),
            )
            for producer_id, state in self._states.items()
            if state.open_from >= 0
        ]
        return sorted(transactions, key=lambda each: each.first_offset)


def _entry(producer_id: int, state: _State) -> ProducerEntry:
    return ProducerEntry(
        producer_id=producer_id,
        producer_epoch=state.epoch,
        last_sequence=_absent(state.last_sequence),
        last_offset=_absent(state.last_offset),
        offset_delta=state.delta,
        timestamp_ms=_absent(state.timestamp_ms),
        coordinator_epoch=_absent(state.coordinator_epoch),
        current_transaction_start_offset=_absent(state.open_from),
    )


def _absent(value: int) -> int | None:
    return value if value >= 0 else None


def _or_none(value: int | None) -> int:
    return NONE if value is None else value
