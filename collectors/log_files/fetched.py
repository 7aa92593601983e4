"""Batches of a Fetch answer: their headers as those of files, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.log_files.segments import control_record_of
from collectors.wire.batches import HEADER, LENGTH_PREFIX, MARKER_BYTES, V2_MAGIC
from rules.facts.log_files import CONTROL_BIT, LogBatch


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """One batch that a leader sent."""

    header: LogBatch
    content: bytes  # the whole batch

    def read(self) -> bytes | None:
        """Return its bytes."""
        return self.content


def read_fetched(records: bytes) -> list[FetchedBatch]:
    """Return all complete batches; one that is cut short at the end is left out.

    A batch in a format before v2 ends the reading.
    """
    batches: list[FetchedBatch] = []
    position = 0
    while position + HEADER.size <= len(records):
        fields = HEADER.unpack_from(records, position)
        end = position + LENGTH_PREFIX + fields[1]
        if fields[3] != V2_MAGIC or not position + HEADER.size <= end <= len(records):
            break
        batches.append(FetchedBatch(_header(fields, records, position, end), records[position:end]))
        position = end
    return batches


def _header(fields: tuple[int, ...], records: bytes, position: int, end: int) -> LogBatch:
    base, _, leader_epoch, _, crc, attributes, last_delta, first_ms, max_ms = fields[:9]
    producer_id, producer_epoch, base_sequence, count = fields[9:]
    content = position + HEADER.size
    is_control = bool(attributes & CONTROL_BIT)
    return LogBatch(
        path="",
        position=position,
        size=end - position,
        base_offset=base,
        last_offset=base + last_delta,
        leader_epoch=_known(leader_epoch),
        crc=crc,
        attributes=attributes,
        first_timestamp_ms=_known(first_ms),
        max_timestamp_ms=_known(max_ms),
        producer_id=_known(producer_id),
        producer_epoch=_known(producer_epoch),
        base_sequence=_known(base_sequence),
        record_count=count,
        control=control_record_of(records[content : content + MARKER_BYTES])
        if is_control
        else None,
    )


def _known(value: int) -> int | None:
    return value if value >= 0 else None
