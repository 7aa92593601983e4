"""Batches with records, and records of the coordinators' topics, put together field by field."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collectors.transaction_record import STATES
from rules.facts.transactions import TransactionState
from service.sandbox.workloads.record_batch import varint
from tests.unit.collectors.wire.records import Batch

KeyAndValue = tuple[bytes | None, bytes | None]
AT_MS: Final = 1_700_000_000_000


def records_batch(records: Sequence[KeyAndValue], **of: Any) -> Batch:
    """Return a batch of these records; `of` are the other fields of the batch."""
    return Batch(last_delta=len(records) - 1, payload=records_bytes(records), **of)


def records_bytes(records: Sequence[KeyAndValue]) -> bytes:
    """Return records as they stand in a batch."""
    return b"".join(_record(place, *record) for place, record in enumerate(records))


def _record(place: int, key: bytes | None, value: bytes | None) -> bytes:
    content = b"\0\0" + varint(place) + _bytes(key) + _bytes(value) + b"\0"
    return varint(len(content)) + content


def _bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A record of `__transaction_state`, version 0; without a state, a tombstone."""

    transactional_id: str
    state: TransactionState | None
    partitions: Mapping[str, Sequence[int]] | None = None

    def encode(self) -> KeyAndValue:
        """Return key and value."""
        key = struct.pack(">h", 0) + _text(self.transactional_id)
        if self.state is None:
            return key, None
        head = struct.pack(">hqhib", 0, 1, 0, 60_000, STATES.index(self.state))
        topics = self.partitions or {}
        partitions = b"".join(
            _text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
            for topic, numbers in topics.items()
        )
        return key, head + struct.pack(">i", len(topics)) + partitions + struct.pack(
            ">qq", AT_MS, AT_MS
        )


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit of `__consumer_offsets`, version 3; without an offset, a tombstone."""

    group: str
    topic: str
    partition: int
    offset: int | None

    def encode(self) -> KeyAndValue:
        """Return key and value."""
        key = (
            struct.pack(">h", 1)
            + _text(self.group)
            + _text(self.topic)
            + struct.pack(">i", self.partition)
        )
        if self.offset is None:
            return key, None
        return key, struct.pack(">hqi", 3, self.offset, 6) + _text("") + struct.pack(">q", AT_MS)
