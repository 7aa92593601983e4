"""One partition's log, scanned for the batches of some producers, a bounded piece at a time.

The scan begins just before the offset at which a batch was rejected: the log ended there then, so
that the last accepted batch of that producer is most likely close. If it is not there, the scan goes
further back, and then to the offset of the record time that the leader remembers. From the rejected
batch it goes on to the end of the log, over as many rounds as that takes. The scanned range has no
holes; only the range that a record time led to may lie before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

from collectors.range_fetch import Range
from collectors.wire.batches import BatchHeader
from collectors.wire.failure import Failure
from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.identity import Broker, TopicPartition
from rules.facts.rejections import SEQUENCES
from rules.question import BatchRequest

BEFORE: Final = (100, 2000)  # offsets before the rejected batch, one step after the other
FAR: Final = 2000  # offsets that are not worth scanning to reach a later rejection
MAX_KEPT: Final = 2000  # batches of the requested producers; the scan stops there
MAX_EMPTY: Final = 2  # answers without a batch in a row: together with others, then alone


class _Piece(Enum):
    """Purpose of the range that is being scanned."""

    ON = "on"  # from the end of the scanned range to the end of the log
    BACK = "back"  # from further back to the start of the scanned range
    AT_TIME = "at_time"  # at a record time; it is not joined with the scanned range


@dataclass(slots=True, kw_only=True)
class BatchScan:
    """The scan of one partition within one leader epoch."""

    name: TopicPartition
    leader: Broker
    leader_epoch: int
    log_start: int
    end: int  # the high watermark, exclusive
    requests: tuple[BatchRequest, ...]
    at_time: int | None = None  # the first offset of `time`; the end if no record is that late
    failure: Failure | None = None  # of this round
    scanned_from: int = -1  # before the first range was chosen
    scanned_to: int = -1
    largest_batch: int | None = None
    _batches: dict[int, dict[int, BatchHeader]] = field(default_factory=dict)  # by base offset
    _range: Range | None = None  # that is not scanned completely yet
    _piece: _Piece = _Piece.ON
    _back_from: int = 0
    _steps_back: int = 1
    _was_at_time: bool = False
    _empty: int = 0

    @property
    def time(self) -> datetime | None:
        """The earliest record time from which all batches are requested, else that of a lost batch."""
        all_from = [request for request in self.requests if _is_by_time(request)]
        times = [request.last_record_at for request in all_from or self.requests]
        return min((time for time in times if time is not None), default=None)

    @property
    def needs_time(self) -> bool:
        """Whether the offset of that time has to be queried."""
        if self.time is None or self.at_time is not None:
            return False
        return self._is_by_time or (self.scanned_to >= 0 and self._misses_one())

    @property
    def is_ready(self) -> bool:
        """Whether enough is known to choose a range."""
        return self.failure is None and (self.at_time is not None or not self._is_by_time)

    @property
    def batch_count(self) -> int:
        """Number of batches found so far."""
        return sum(len(batches) for batches in self._batches.values())

    def suits(self, requests: Sequence[BatchRequest]) -> bool:
        """Whether the scan can go on for these requests; otherwise it has to begin anew."""
        if {request.producer_id for request in requests} != {
            request.producer_id for request in self.requests
        }:
            return False
        if [request for request in requests if _is_by_time(request)] != [
            request for request in self.requests if _is_by_time(request)
        ]:
            return False
        anchor = _anchor(requests, self.end)
        is_stuck = self.batch_count >= MAX_KEPT or anchor - self.scanned_to > FAR
        return not (is_stuck and anchor > self.scanned_to)

    def go_on(self, leader: Broker, end: int, requests: tuple[BatchRequest, ...]) -> None:
        """Begin another round within the same leader epoch."""
        self.leader, self.end, self.requests = leader, end, requests
        self.failure, self._empty = None, 0
        if self._range is not None:
            self._range = self._new(self._range.position, self._range.end)

    def next_range(self) -> Range | None:
        """Return the range to scan next, None if nothing is left or the leader sends no batches."""
        if not self.is_ready or self._empty >= MAX_EMPTY or self.batch_count >= MAX_KEPT:
            return None
        if self.scanned_to < 0:
            self.scanned_from = self.scanned_to = self._begin()
        if self._range is None:
            self._range = self._choose()
        return self._range

    def _begin(self) -> int:
        starts = [self._before(BEFORE[0])] if not all(map(_is_by_time, self.requests)) else []
        starts += [self.at_time] if self._is_by_time and self.at_time is not None else []
        return max(min(*starts, self.end), self.log_start)

    def _choose(self) -> Range | None:
        """Choose first what a proof needs: up to the rejected batch, then back, then on."""
        if self.scanned_to < min(_anchor(self.requests, self.end), self.end):
            return self._go(_Piece.ON, self.scanned_to, self.end)
        if self._misses_one():
            if self._steps_back < len(BEFORE) and self.scanned_from > self.log_start:
                return self._further_back()
            if not self._was_at_time and self.at_time is not None:
                self._was_at_time = True
                if self.at_time < self.scanned_from:
                    return self._go(_Piece.AT_TIME, self.at_time, self.scanned_from)
        if self.scanned_to >= self.end:
            return None
        return self._go(_Piece.ON, self.scanned_to, self.end)

    def _further_back(self) -> Range:
        start = max(self._before(BEFORE[self._steps_back]), self.log_start)
        self._steps_back += 1
        self._back_from = min(start, self.scanned_from - 1)
        return self._go(_Piece.BACK, self._back_from, self.scanned_from)

    def _before(self, offsets: int) -> int:
        return _anchor(self.requests, self.end) - offsets

    def _go(self, piece: _Piece, start: int, end: int) -> Range:
        self._piece = piece
        return self._new(start, end)

    def _new(self, start: int, end: int) -> Range:
        return Range(
            name=self.name,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            position=start,
            end=end,
        )

    def take(self) -> None:
        """Add the answer for the range that `next_range` returned last."""
        piece = self._range
        if piece is None:
            return
        self.failure = piece.failure
        if not piece.headers:
            self._empty += 1
            return
        self._empty, begin = 0, piece.headers[0].base_offset
        self._note(piece.headers)
        piece.headers = []
        is_done = piece.position >= piece.end or self._piece is _Piece.AT_TIME
        if self._piece is _Piece.ON:
            self.scanned_from = min(self.scanned_from, begin)
            self.scanned_to = piece.position
        elif self._piece is _Piece.BACK:
            self._back_from = min(self._back_from, begin)
            self.scanned_from = self._back_from if is_done else self.scanned_from
        self._range = None if is_done else piece

    def _note(self, headers: Sequence[BatchHeader]) -> None:
        for header in headers:
            if not header.is_control:
                self.largest_batch = max(self.largest_batch or 0, _span(header))
            if header.producer_id in {request.producer_id for request in self.requests}:
                self._batches.setdefault(header.producer_id or 0, {})[header.base_offset] = header

    def result(self, producer_id: int) -> BatchesOf:
        """Return the batches and markers of one producer that were found so far."""
        headers = [header for _, header in sorted(self._batches.get(producer_id, {}).items())]
        return BatchesOf(
            name=self.name,
            producer_id=producer_id,
            batches=tuple(_batch(header) for header in headers if header.base_sequence is not None),
            markers=tuple(_marker(header) for header in headers if header.is_control),
            scanned_from=self.scanned_from,
            scanned_to=self.scanned_to,
            since=self.time if self._is_by_time else None,
            largest_batch=self.largest_batch,
        )

    @property
    def _is_by_time(self) -> bool:
        return any(map(_is_by_time, self.requests))

    def _misses_one(self) -> bool:
        """Whether the batch of a last accepted sequence was not found yet."""
        return any(
            request.sequence is not None and not self._has(request.producer_id, request.sequence)
            for request in self.requests
        )

    def _has(self, producer_id: int, sequence: int) -> bool:
        return any(
            header.base_sequence is not None
            and (sequence - header.base_sequence) % SEQUENCES < _span(header)
            for header in self._batches.get(producer_id, {}).values()
        )


def _is_by_time(request: BatchRequest) -> bool:
    """Whether all batches from a time on are requested."""
    return (
        request.offset is None and request.sequence is None and request.last_record_at is not None
    )


def _anchor(requests: Sequence[BatchRequest], end: int) -> int:
    """Return the first offset at which a batch was rejected; the end if no request names one."""
    return min([end, *(request.offset for request in requests if request.offset is not None)])


def _span(header: BatchHeader) -> int:
    """Return how many sequences a batch has: as many as offsets, also after a compaction."""
    return header.last_offset - header.base_offset + 1


def _batch(header: BatchHeader) -> BatchSeen:
    base, span = header.base_sequence or 0, _span(header)
    return BatchSeen(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.leader_epoch,
        producer_epoch=header.producer_epoch or 0,
        base_sequence=base,
        last_sequence=(base + span - 1) % SEQUENCES,
        record_count=header.record_count,
        is_transactional=header.is_transactional,
    )


def _marker(header: BatchHeader) -> MarkerSeen:
    return MarkerSeen(
        offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_epoch=header.producer_epoch or 0,
        is_commit=header.is_commit,
    )
