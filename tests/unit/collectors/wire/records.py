"""Record batches in the v2 layout, put together field by field (KIP-98)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
COUNTED_HEADER: Final = 49  # bytes of the header that the batch length counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch to be; `count` None means that compaction removed nothing."""

    base_offset: int = 0
    last_delta: int = 0
    count: int | None = None
    leader_epoch: int = 3
    attributes: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    first_ms: int = 1_700_000_000_000
    payload: bytes = b"compressed bytes that nobody reads"
    magic: int = 2
    is_checked: bool = False  # with its checksum; without it, a number that is none

    def encode(self) -> bytes:
        """Return the bytes of the batch."""
        count = self.last_delta + 1 if self.count is None else self.count
        head = struct.pack(">qi", self.base_offset, COUNTED_HEADER + len(self.payload))
        tail = struct.pack(">hi", self.attributes, self.last_delta)
        times = struct.pack(">qq", self.first_ms, self.first_ms + 500)
        producer = struct.pack(">qhi", self.producer_id, self.producer_epoch, self.base_sequence)
        checked = tail + times + producer + struct.pack(">i", count) + self.payload
        crc = crc32c(checked) if self.is_checked else 0xDEADBEEF
        return head + struct.pack(">ibI", self.leader_epoch, self.magic, crc) + checked


def marker(
    *,
    is_commit: bool,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> Batch:
    """Return the control batch that ends a transaction."""
    value = struct.pack(">hi", 0, coordinator_epoch)
    record = b"\0\0\0\x08" + struct.pack(">hh", 0, int(is_commit)) + b"\x0c" + value + b"\0"
    return Batch(
        base_offset=base_offset,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        payload=bytes([len(record) * 2]) + record,
    )
