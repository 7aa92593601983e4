"""Batches of a log by what a case is about; all else is ordinary."""

from __future__ import annotations

from typing import Any

from rules.facts.log_files import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    ControlRecord,
    ControlType,
    LogBatch,
)

PRODUCER = 7


def batch(first: int, last: int, **fields: Any) -> LogBatch:
    """Return a batch of an idempotent producer, whose sequences are the offsets; its checksum likewise."""
    values: dict[str, Any] = {
        "path": "00000000000000000000.log",
        "position": first * 100,
        "size": 100,
        "leader_epoch": 0,
        "crc": 1000 + first,
        "attributes": 0,
        "first_timestamp_ms": 1_700_000_000_000,
        "max_timestamp_ms": 1_700_000_000_000,
        "producer_id": PRODUCER,
        "producer_epoch": 0,
        "base_sequence": first,
        "record_count": last - first + 1,
    }
    return LogBatch(base_offset=first, last_offset=last, **(values | fields))


def in_transaction(first: int, last: int, **fields: Any) -> LogBatch:
    """Return a batch of a transaction."""
    return batch(first, last, attributes=TRANSACTIONAL_BIT, **fields)


def marker(offset: int, type_: ControlType = ControlType.COMMIT, **fields: Any) -> LogBatch:
    """Return the end of a transaction."""
    return batch(
        offset,
        offset,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        base_sequence=None,
        control=ControlRecord(type_, 0),
        **fields,
    )
