"""Writes what is missing: records as lines of JSON, or the raw batches byte for byte.

A record's key, value and headers are text where they are UTF-8, and base64 where they are not, so that
reading a line back gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection
from typing import IO, Any, Final

from collectors.log_files.copies import FileBatch
from rules.facts.log_files import LOG_APPEND_TIME_BIT
from rules.log_files.missing import Fate, MissingBatch
from service.observe.log_diff.comparing import missing_records
from service.views.log_diff.compared import Comparison, MissingRecord, Tally, Written
from service.views.log_diff.document import Shown

UTF_8: Final = "utf-8"
BASE_64: Final = "base64"


def write(
    comparison: Comparison,
    records: IO[str] | None,
    segment: IO[bytes] | None,
    fates: Collection[Fate],
) -> Shown:
    """Write a comparison's records and batches to the files that are wanted."""
    written = None
    if records is not None or comparison.matches is not None:
        written = write_records(comparison, records, fates)
    return Shown(
        comparison=comparison,
        records=written if records is not None else None,
        segment=None if segment is None else write_segment(comparison, segment),
    )


def write_records(comparison: Comparison, file: IO[str] | None, fates: Collection[Fate]) -> Written:
    """Write the records of these fates, and count all by their fate; without a file they are counted.

    Of a topic to which brokers alone write, nothing is written: brokers reject it, and all that is produced with it.
    """
    written, tally = Written(), Tally()
    fates = () if comparison.is_internal else fates
    for entry in missing_records(comparison):
        if isinstance(entry, MissingBatch):
            batch = entry.batch
            tally.add(
                Fate.NOT_READABLE, batch.base_offset, batch.last_offset + 1, batch.record_count
            )
            written.unreadable_batches += 1
            continue
        offset = entry.record.offset
        tally.add(entry.fate, offset, offset + 1, 1)
        if file is not None and entry.fate in fates:
            line = json.dumps(record_line(comparison, entry), separators=(",", ":"))
            file.write(f"{line}\n")
            written.records += 1
    comparison.tally = tally
    written.left_out = Counter({fate: n for fate, n in tally.counts.items() if fate not in fates})
    return written


def record_line(comparison: Comparison, entry: MissingRecord) -> dict[str, Any]:
    """Return one record as it is written."""
    record, batch = entry.record, entry.missing.batch
    has_leader_time = bool(batch.attributes & LOG_APPEND_TIME_BIT)
    return {
        "topic": comparison.name.topic,
        "partition": comparison.name.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": "LogAppendTime" if has_leader_time else "CreateTime",
        **_encoded("key", record.key),
        **_encoded("value", record.value),
        "headers": [
            {**_encoded("name", name), **_encoded("value", content)}
            for name, content in record.headers
        ],
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "sequence": entry.sequence,
        "transaction": str(entry.missing.outcome),
        "fate": str(entry.fate),
        "again_at": entry.again_at,
    }


def write_segment(comparison: Comparison, file: IO[bytes]) -> Written:
    """Write every batch of the copy from the divergence on, with control batches, as it lies there."""
    written = Written()
    if comparison.missing is None:
        return written
    for batch in comparison.copy.batches(comparison.missing.divergence):
        content = FileBatch(batch.header).read()
        if content is None:
            written.unreadable_batches += 1
            continue
        file.write(content)
        written.batches += 1
        written.records += 0 if batch.header.is_control else batch.header.record_count
        written.bytes += len(content)
    return written


def _encoded(name: str, content: bytes | None) -> dict[str, str | None]:
    """Return a field and its encoding; both are null where there is no content."""
    if content is None:
        return {name: None, f"{name}_encoding": None}
    try:
        return {name: content.decode(UTF_8), f"{name}_encoding": UTF_8}
    except UnicodeDecodeError:
        return {name: base64.b64encode(content).decode(), f"{name}_encoding": BASE_64}
