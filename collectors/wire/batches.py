"""Record batch headers, and what a read_committed reader would get out of them.

Only the 61 bytes in front of each batch are read, and of a control batch the key of its record; nothing is
decompressed. Source: the v2 record batch layout (KIP-98), EndTransactionMarker of the broker, aborted
transactions of a Fetch answer with isolation read_committed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.wire.cursor import uvarint
from rules.facts.log_files import CONTROL_BIT, TRANSACTIONAL_BIT

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LENGTH_PREFIX: Final = 12  # base offset and batch length, not counted in the length itself
V2_MAGIC: Final = 2
_MARKER_KEY: Final = struct.Struct(">hh")  # version, type
_MARKER_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch
MARKER_BYTES: Final = 24  # that hold the head, the key and the value of its record
_MARKERS: Final = {0: False, 1: True}  # abort, commit; other types are no markers of transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """The part of a record batch that stays readable through compression and compaction."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    record_count: int
    is_transactional: bool
    is_control: bool
    is_commit: bool | None = None  # of a transaction's marker; None: it is none, or was not read
    # Times of the first and the latest record, set by producers; -1 where they set none.
    first_ms: int = -1
    last_ms: int = -1
    size: int = 0  # bytes of the whole batch

    @property
    def is_dense(self) -> bool:
        """Whether every offset of the batch still holds a record."""
        return self.record_count == self.last_offset - self.base_offset + 1


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """One entry of a Fetch answer's list: records of this producer from here on were aborted."""

    producer_id: int
    first_offset: int


def read_headers(records: bytes) -> list[BatchHeader]:
    """Read the headers of all complete batches; one that is cut short at the end is left out.

    Batches in formats before v2 end the reading: they hold no producer id and no control records.
    """
    return [header for header, end in _placed_headers(records) if end <= len(records)]


def read_all_headers(records: bytes) -> list[BatchHeader]:
    """Read the same, and the header of a last batch whose records are cut short."""
    return [header for header, _ in _placed_headers(records)]


def split_batches(records: bytes) -> list[tuple[BatchHeader, bytes]]:
    """Return the header and the bytes of each complete batch."""
    return [
        (header, records[end - header.size : end])
        for header, end in _placed_headers(records)
        if end <= len(records)
    ]


def _placed_headers(records: bytes) -> Iterator[tuple[BatchHeader, int]]:
    """Yield each header, and the position behind its batch."""
    position = 0
    while position + HEADER.size <= len(records):
        fields = HEADER.unpack_from(records, position)
        content, end = position + HEADER.size, position + LENGTH_PREFIX + fields[1]
        if fields[3] != V2_MAGIC or end < content:
            break
        yield _header(fields, records[content : content + MARKER_BYTES]), end
        position = end


def _header(fields: tuple[int, ...], start: bytes) -> BatchHeader:
    base, length, leader_epoch, _, _, attributes, last_delta, first_ms, last_ms = fields[:9]
    producer_id, producer_epoch, base_sequence, count = fields[9:]
    is_control = bool(attributes & CONTROL_BIT)
    return BatchHeader(
        base_offset=base,
        last_offset=base + last_delta,
        leader_epoch=leader_epoch,
        producer_id=producer_id if producer_id >= 0 else None,
        producer_epoch=producer_epoch if producer_epoch >= 0 else None,
        base_sequence=base_sequence if base_sequence >= 0 else None,
        record_count=count,
        is_transactional=bool(attributes & TRANSACTIONAL_BIT),
        is_control=is_control,
        is_commit=_read_marker(start) if is_control else None,
        first_ms=first_ms,
        last_ms=last_ms,
        size=length + LENGTH_PREFIX,
    )


def _read_marker(record: bytes) -> bool | None:
    """Return whether the record of a control batch is a commit; None where it is no marker."""
    control = read_control_record(record)
    return None if control is None else _MARKERS.get(control[0])


def read_control_record(record: bytes) -> tuple[int, int | None] | None:
    """Return the type of a control record, and the coordinator epoch of a marker; None: not readable.

    `record` begins at the record and may end behind its value, or with the key: then there is no epoch.
    In front of the key are length, attributes (one byte), two differences, and the key's length.
    """
    try:
        _, position = uvarint(record, 0)
        position += 1
        for _ in range(2):
            _, position = uvarint(record, position)
        length, position = uvarint(record, position)
        _, kind = _MARKER_KEY.unpack_from(record, position)
    except (IndexError, OverflowError, struct.error):
        return None
    return kind, _coordinator_epoch(record, position + (length >> 1)) if kind in _MARKERS else None


def _coordinator_epoch(record: bytes, position: int) -> int | None:
    """Return the epoch in a marker's value, whose length is at `position`."""
    try:
        _, position = uvarint(record, position)
        _, epoch = _MARKER_VALUE.unpack_from(record, position)
    except (IndexError, OverflowError, struct.error):
        return None
    return int(epoch)


def holds_records(
    headers: Sequence[BatchHeader],
    aborted: Sequence[AbortedTransaction],
    *,
    start: int,
    end: int,
) -> bool | None:
    """Whether [start, end) holds a record that a read_committed reader would get.

    `headers` begin at or before `start`; if they do not reach `end` and nothing was found, the
    answer is None. It is also None if compaction left a batch that straddles `start`, because the
    headers alone do not show on which side its remaining records are.
    """
    is_sure = True
    for batch in headers:
        if batch.base_offset >= end:
            break
        if batch.last_offset < start or batch.is_control or not batch.record_count:
            continue
        if _is_aborted(batch, headers, aborted):
            continue
        if batch.base_offset >= start or batch.is_dense:
            return True
        is_sure = False
    reaches_end = bool(headers) and headers[-1].last_offset + 1 >= end
    return False if is_sure and reaches_end else None


def _is_aborted(
    batch: BatchHeader, headers: Sequence[BatchHeader], aborted: Sequence[AbortedTransaction]
) -> bool:
    """Whether an aborted transaction of the batch's producer is open at the batch.

    It is open from its first offset to its producer's next control batch.
    """
    if not batch.is_transactional:
        return False
    starts = [
        entry.first_offset
        for entry in aborted
        if entry.producer_id == batch.producer_id and entry.first_offset <= batch.last_offset
    ]
    if not starts:
        return False
    return not any(
        marker.is_control
        and marker.producer_id == batch.producer_id
        and max(starts) < marker.base_offset < batch.base_offset
        for marker in headers
    )
