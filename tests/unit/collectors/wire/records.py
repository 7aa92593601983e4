"""Record batches in the v2 layout, put together field by field (KIP-98)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

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

    def encode(self) -> bytes:
        """Return the bytes of the batch."""
        count = self.last_delta + 1 if self.count is None else self.count
        head = struct.pack(">qi", self.base_offset, COUNTED_HEADER + len(self.payload))
        middle = struct.pack(">ibI", self.leader_epoch, self.magic, 0xDEADBEEF)
        tail = struct.pack(">hi", self.attributes, self.last_delta)
        times = struct.pack(">qq", self.first_ms, self.first_ms + 500)
        producer = struct.pack(">qhi", self.producer_id, self.producer_epoch, self.base_sequence)
        return head + middle + tail + times + producer + struct.pack(">i", count) + self.payload
