"""Records of `__transaction_state` and batches of records, written as coordinators write them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from collectors.transaction_record import STATES, TransactionRecord, TransactionValue
from collectors.wire.records import Record
from rules.facts.transactions import TransactionState
from tests.unit.collectors.wire.records import Batch

NOON_MS = 1_767_268_800_000


def value(state: TransactionState = TransactionState.ONGOING, **overrides: Any) -> TransactionValue:
    """Return a value of producer 7, epoch 3, timeout 60 s, of an old client on a 4.x broker."""
    fields: dict[str, Any] = {
        "version": 1,
        "producer_id": 7,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "state": state,
        "partitions": (("orders", (0,)),),
        "last_update_ms": NOON_MS,
        "start_ms": NOON_MS,
    }
    return TransactionValue(**{**fields, **overrides})


def render_key(transactional_id: str, kind: int = 0) -> bytes:
    """Return the bytes of a key."""
    name = transactional_id.encode()
    return struct.pack(">hh", kind, len(name)) + name


def render_value(value: TransactionValue) -> bytes:
    """Return the bytes of a value in its own version."""
    head = struct.pack(
        ">hqhib",
        value.version,
        value.producer_id,
        value.producer_epoch,
        value.timeout_ms,
        STATES.index(value.state),
    )
    times = struct.pack(">qq", value.last_update_ms, _number(value.start_ms))
    if value.version == 0:
        return head + _plain(value.partitions) + times
    return head + _compact(value.partitions) + times + _tags(value)


def render_record(record: Record, first_ms: int = -1) -> bytes:
    """Return the bytes of a record in a batch that begins at offset 0 and at this timestamp."""
    later_ms = 0 if record.timestamp_ms is None else record.timestamp_ms - first_ms
    headers = b"".join(_bytes(name) + _bytes(content) for name, content in record.headers)
    content = (_bytes(record.key), _bytes(record.value), varint(len(record.headers)), headers)
    body = b"\0" + varint(later_ms) + varint(record.offset) + b"".join(content)
    return varint(len(body)) + body


def render_batch(records: Sequence[Record], *, base: int = 0, **fields: Any) -> bytes:
    """Return one batch; offsets of its records count from `base`."""
    first_ms = next((r.timestamp_ms for r in records if r.timestamp_ms is not None), -1)
    payload = b"".join(render_record(record, first_ms) for record in records)
    last = max((record.offset for record in records), default=0)
    return Batch(
        base_offset=base,
        last_delta=last,
        count=len(records),
        first_ms=first_ms,
        payload=payload,
        **fields,
    ).encode()


def render_log(records: Sequence[TransactionRecord], *, base: int = 0, epoch: int = 3) -> bytes:
    """Return one batch per record, as a coordinator writes them."""
    return b"".join(
        render_batch([_plain_record(record)], base=base + place, leader_epoch=epoch)
        for place, record in enumerate(records)
    )


def varint(number: int) -> bytes:
    """Return a signed (zigzag) varint."""
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)


def uvarint(number: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _plain_record(record: TransactionRecord) -> Record:
    content = None if record.value is None else render_value(record.value)
    key = render_key(record.transactional_id)
    return Record(0, key, content, timestamp_ms=record.written_ms)


def _bytes(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def _number(number: int | None) -> int:
    return -1 if number is None else number


Partitions = Sequence[tuple[str, tuple[int, ...]]] | None


def _plain(topics: Partitions) -> bytes:
    if topics is None:
        return struct.pack(">i", -1)
    out = struct.pack(">i", len(topics))
    for topic, numbers in topics:
        name = topic.encode()
        out += struct.pack(">h", len(name)) + name
        out += struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return out


def _compact(topics: Partitions) -> bytes:
    if topics is None:
        return uvarint(0)
    out = uvarint(len(topics) + 1)
    for topic, numbers in topics:
        name = topic.encode()
        out += uvarint(len(name) + 1) + name + uvarint(len(numbers) + 1)
        out += struct.pack(f">{len(numbers)}i", *numbers) + uvarint(0)
    return out


def _tags(value: TransactionValue) -> bytes:
    written = {
        0: None
        if value.previous_producer_id is None
        else struct.pack(">q", value.previous_producer_id),
        1: None if value.next_producer_id is None else struct.pack(">q", value.next_producer_id),
        2: struct.pack(">h", value.client_transaction_version)
        if value.client_transaction_version
        else None,
        3: None
        if value.next_producer_epoch is None
        else struct.pack(">h", value.next_producer_epoch),
    }
    present = {tag: content for tag, content in written.items() if content is not None}
    return uvarint(len(present)) + b"".join(
        uvarint(tag) + uvarint(len(content)) + content for tag, content in present.items()
    )
