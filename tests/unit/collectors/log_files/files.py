"""Files of a log directory, put together byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from crc32c import crc32c

from rules.facts.log_states import AbortedEntry, ProducerEntry

BASE: Final = "00000000000000000000"
TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def snapshot_bytes(*producers: ProducerEntry) -> bytes:
    """Return a `.snapshot`."""
    entries = b"".join(map(_entry, producers))
    checked = struct.pack(">i", len(producers)) + entries
    return struct.pack(">hI", 1, crc32c(checked)) + checked


def _entry(producer: ProducerEntry) -> bytes:
    values = (
        producer.last_sequence,
        producer.last_offset,
        producer.offset_delta,
        producer.timestamp_ms,
        producer.coordinator_epoch,
        producer.current_transaction_start_offset,
    )
    numbers = (-1 if value is None else value for value in values)
    return struct.pack(">qhiqiqiq", producer.producer_id, producer.producer_epoch, *numbers)


def index_bytes(*aborted: AbortedEntry) -> bytes:
    """Return a `.txnindex`."""
    return b"".join(
        struct.pack(
            ">hqqqq",
            0,
            each.producer_id,
            each.first_offset,
            each.last_offset,
            each.last_stable_offset,
        )
        for each in aborted
    )


def checkpoint_text(*lines: str, count: int | None = None) -> str:
    """Return a checkpoint."""
    return "\n".join(["0", str(len(lines) if count is None else count), *lines, ""])


def write_log(folder: Path, *segments: bytes, bases: Sequence[int] = (0,)) -> Path:
    """Write the folder of a partition."""
    folder.mkdir(parents=True, exist_ok=True)
    for base, content in zip(bases, segments, strict=True):
        (folder / f"{base:020}.log").write_bytes(content)
    return folder
