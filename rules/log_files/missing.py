"""What a former leader's copy has beyond the place where it parts from the new log.

A producer that got no answer sends the same batch again, to the new leader: with the same producer id, epoch and
first sequence, at another offset. Such a batch is not lost. What a producer sends again under another id or epoch
cannot be recognized by its header, only by the content of its records.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from rules.facts.log_files import LOG_APPEND_TIME_BIT, ControlType, LogBatch
from rules.facts.rejections import SEQUENCES

MAX_BATCHES: Final = 200_000  # in memory: 150 MB


class Outcome(StrEnum):
    """How the transaction of a batch ended."""

    NONE = "none"  # it is in no transaction
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNDECIDED = "undecided"  # neither log has its marker


class Fate(StrEnum):
    """What became of a record that lies beyond the place where the logs part."""

    LOST = "lost"  # proven committed, visible to read_committed, and not in the new log
    BEYOND_HIGH_WATERMARK = (
        "beyond_high_watermark"  # as above; whether it was committed is not known
    )
    NOT_COMPARED = "not_compared"  # as lost; but not all of the new log could be read
    POSSIBLY_AGAIN = "possibly_again"  # a record of equal content is in the new log
    SEQUENCE_REUSED = "sequence_reused"  # the new log has its sequence, and other bytes
    UNDECIDED = "undecided"  # in a transaction without an end
    ABORTED = "aborted"  # in an aborted transaction
    AGAIN = "again"  # the same batch is in the new log
    NOT_READABLE = (
        "not_readable"  # its batch is damaged, or compressed in a way that cannot be read
    )


# Fates of records that may have to be produced again, and that a person decides on.
OPEN_FATES: Final = (
    Fate.BEYOND_HIGH_WATERMARK,
    Fate.NOT_COMPARED,
    Fate.POSSIBLY_AGAIN,
    Fate.SEQUENCE_REUSED,
    Fate.UNDECIDED,
)


class Match(StrEnum):
    """How a batch of the new log answers to one of the copy with the same sequences."""

    SAME = "same"
    OTHER_BYTES = "other_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBatch:
    """A batch of the copy that lies, at least in part, beyond the place where the logs part."""

    batch: LogBatch
    outcome: Outcome = Outcome.NONE
    marker_offset: int | None = None  # of the end of its transaction
    is_marker_in_new: bool = False  # the copy does not have it
    match: Match | None = None
    match_offset: int | None = None  # first offset, in the new log

    def fate(self, high_watermark: int | None, *, is_new_complete: bool = True) -> Fate:
        """Return what became of its records, as far as headers show it.

        `is_new_complete`: all of the new log was read, so that what was not found there is not there.
        """
        if self.match is Match.SAME:
            return Fate.AGAIN
        if self.outcome is Outcome.ABORTED:
            return Fate.ABORTED
        if self.match is Match.OTHER_BYTES:
            return Fate.SEQUENCE_REUSED
        if self.outcome is Outcome.UNDECIDED:
            return Fate.UNDECIDED
        if high_watermark is None or self.batch.last_offset >= high_watermark:
            return Fate.BEYOND_HIGH_WATERMARK
        return Fate.LOST if is_new_complete else Fate.NOT_COMPARED


_Producer = tuple[int, int]  # id and epoch


@dataclass(slots=True)
class _Sequences:
    """The batches of one producer and epoch, by their first sequences."""

    _places: list[tuple[int, int]] = field(default_factory=list)  # first sequence, place; ascending
    _longest: int = 0

    def add(self, batch: LogBatch, place: int) -> None:
        insort(self._places, (batch.base_sequence or 0, place))  # at the end, nearly always
        self._longest = max(self._longest, _length(batch))

    def near(self, batch: LogBatch) -> Iterator[int]:
        """Yield the places of batches that may have a sequence in common with this one; sequences wrap."""
        first = batch.base_sequence or 0
        for turn in (-SEQUENCES, 0, SEQUENCES):
            start = bisect_left(self._places, (first + turn - self._longest, 0))
            for at in range(start, len(self._places)):
                sequence, place = self._places[at]
                if sequence >= first + turn + _length(batch):
                    break
                yield place


@dataclass(slots=True, kw_only=True)
class MissingBatches:
    """Gathers the batches of the copy, then reads those of the new log past them, of any number.

    `is_cut`: the copy ends early, so that a transaction without a marker may have had one.
    """

    divergence: int
    is_cut: bool = False
    control_batches: int = 0
    control_offsets: int = 0
    stopped_at: int | None = None  # the first offset that was too much
    end: int = 0  # behind the last batch of the copy
    gaps: list[tuple[int, int]] = field(default_factory=list)  # offsets without a batch: from, to
    new_gaps: list[tuple[int, int]] = field(default_factory=list)  # likewise, of the new log
    _new_end: int = 0
    _batches: list[MissingBatch] = field(default_factory=list)
    _open: dict[int, list[int]] = field(default_factory=dict)  # by producer id
    _by_sequence: dict[tuple[int, int, int], int] | None = None
    _by_producer: dict[_Producer, _Sequences] = field(default_factory=dict)

    @property
    def batches(self) -> Sequence[MissingBatch]:
        """The batches of records, in the order of the copy."""
        return self._batches

    def take_old(self, batches: Iterable[LogBatch]) -> None:
        """Take the batches of the copy, in order; those before the divergence are passed over."""
        for batch in batches:
            if batch.last_offset < self.divergence:
                continue
            if len(self._batches) >= MAX_BATCHES:
                self.stopped_at = batch.base_offset
                self._open.clear()  # what is left out may have their markers
                return
            self._note_gap(batch)
            if batch.is_control:
                self._end_transaction(batch)
            else:
                self._add(batch)

    def _note_gap(self, batch: LogBatch) -> None:
        """Note offsets that no batch has; the marker of an open transaction may have been among them."""
        expected = max(self.end, self.divergence)
        if batch.base_offset > expected:
            self.gaps.append((expected, batch.base_offset))
            self._open.clear()
        self.end = max(self.end, batch.last_offset + 1)

    def _add(self, batch: LogBatch) -> None:
        outcome = Outcome.UNDECIDED if batch.is_transactional else Outcome.NONE
        if batch.is_transactional and batch.producer_id is not None:
            self._open.setdefault(batch.producer_id, []).append(len(self._batches))
        self._batches.append(MissingBatch(batch=batch, outcome=outcome))

    def _end_transaction(self, batch: LogBatch) -> None:
        self.control_batches += 1
        self.control_offsets += batch.last_offset - max(batch.base_offset, self.divergence) + 1
        self._decide(batch, is_in_new=False)

    def _decide(self, marker: LogBatch, *, is_in_new: bool) -> None:
        outcome = _outcome(marker)
        if outcome is None or marker.producer_id is None:
            return
        for place in self._open.pop(marker.producer_id, ()):
            self._batches[place] = replace(
                self._batches[place],
                outcome=outcome,
                marker_offset=marker.base_offset,
                is_marker_in_new=is_in_new,
            )

    def take_new(self, batch: LogBatch) -> None:
        """Take one batch of the new log that lies beyond the divergence; in order."""
        self._note_new_gap(batch)
        if batch.is_control:
            self._take_marker(batch)
        elif batch.base_sequence is not None and batch.producer_id is not None:
            self._take_sequence(batch)

    def _note_new_gap(self, batch: LogBatch) -> None:
        """Note offsets of the new log that no batch has; what was sent again may have been among them."""
        expected = max(self._new_end, self.divergence)
        if batch.base_offset > expected:
            self.new_gaps.append((expected, batch.base_offset))
        self._new_end = batch.last_offset + 1

    def _take_marker(self, marker: LogBatch) -> None:
        """Let the new log's first marker of a producer end the transaction that the copy left open.

        The coordinator writes it before the producer can begin another one: with the epoch of the
        transaction, or the next one (transactions v2, a timeout, a fenced producer).
        """
        open_places = self._open.get(marker.producer_id or 0)
        if self.is_cut or self.gaps or not open_places or marker.producer_epoch is None:
            return
        epoch = self._batches[open_places[-1]].batch.producer_epoch
        if epoch is not None and marker.producer_epoch - epoch in (0, 1):
            self._decide(marker, is_in_new=True)
        elif _outcome(marker) is not None:
            del self._open[marker.producer_id or 0]

    def _take_sequence(self, batch: LogBatch) -> None:
        index = self._index()
        producer = (batch.producer_id or 0, batch.producer_epoch or 0)
        if producer not in self._by_producer:
            return
        place = index.get((*producer, batch.base_sequence or 0))
        if place is not None and _is_same(self._batches[place].batch, batch):
            self._match(place, Match.SAME, batch)
            return
        for place in self._by_producer[producer].near(batch):
            if _overlaps(self._batches[place].batch, batch):
                self._match(place, Match.OTHER_BYTES, batch)

    def _match(self, place: int, match: Match, batch: LogBatch) -> None:
        if self._batches[place].match is not Match.SAME:
            matched = replace(self._batches[place], match=match, match_offset=batch.base_offset)
            self._batches[place] = matched

    def _index(self) -> Mapping[tuple[int, int, int], int]:
        """Return where the batch of a sequence is; made when the first one is looked up."""
        if self._by_sequence is None:
            self._by_sequence = {}
            for place, missing in enumerate(self._batches):
                batch = missing.batch
                if batch.producer_id is None or batch.base_sequence is None:
                    continue
                producer = (batch.producer_id, batch.producer_epoch or 0)
                self._by_sequence[(*producer, batch.base_sequence)] = place
                self._by_producer.setdefault(producer, _Sequences()).add(batch, place)
        return self._by_sequence


def proven_high_watermark(
    bounds: Iterable[int | None], batches: Iterable[MissingBatch]
) -> int | None:
    """Return the highest lower bound of the old high watermark.

    A transactional producer writes with acks=all and commits when all is acknowledged: what lies below the
    records of a transaction with a commit marker was committed.
    """
    ends = [
        missing.batch.last_offset + 1 for missing in batches if missing.outcome is Outcome.COMMITTED
    ]
    return max([offset for offset in bounds if offset is not None] + ends, default=None)


def _outcome(marker: LogBatch) -> Outcome | None:
    kind = None if marker.control is None else marker.control.type
    if kind is ControlType.COMMIT:
        return Outcome.COMMITTED
    return Outcome.ABORTED if kind is ControlType.ABORT else None


def _length(batch: LogBatch) -> int:
    return batch.last_offset - batch.base_offset + 1


def _is_same(old: LogBatch, new: LogBatch) -> bool:
    """Whether two batches of one producer and first sequence are one.

    Their checksum covers all that the producer wrote. With LogAppendTime it covers the leader's time too.
    """
    if _length(old) != _length(new):
        return False
    has_leader_time = bool((old.attributes | new.attributes) & LOG_APPEND_TIME_BIT)
    return old.crc == new.crc or has_leader_time


def _overlaps(old: LogBatch, new: LogBatch) -> bool:
    """Whether two batches of one producer and epoch have a sequence in common; it wraps at 2^31."""
    first, other = old.base_sequence or 0, new.base_sequence or 0
    ahead = (other - first) % SEQUENCES
    return ahead < _length(old) or (first - other) % SEQUENCES < _length(new)
