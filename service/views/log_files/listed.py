"""Batches and records of files as rows, one at a time: there may be millions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from collectors.log_files.record_reading import read_records_of
from collectors.wire.records import Record
from rules.facts.log_files import BatchBlock, FileProblem, LogBatch
from service.views.log_files.filters import Filter
from service.views.log_files.models import BatchRow, RecordRow
from service.views.model import Row


def batch_rows(block: BatchBlock, shown: Filter) -> Iterator[Row]:
    """Yield the batches of a block that a filter leaves."""
    for row in _shown(block, shown):
        yield BatchRow.of(block.row(row)).to_row()


def record_rows(block: BatchBlock, shown: Filter) -> Iterator[Row | FileProblem]:
    """Yield the records of a block that a filter leaves, and what of them cannot be read."""
    for row in _shown(block, shown):
        for part in read_records_of(Path(block.path), block.part(row, row + 1)):
            if isinstance(part, FileProblem):
                yield part
                continue
            batch, records = part
            chosen = (record for record in records if shown.has(record.offset, record.offset))
            yield from (_record(batch, record) for record in chosen)


def _shown(block: BatchBlock, shown: Filter) -> Sequence[int]:
    rows: list[int] = np.flatnonzero(shown.rows(block)).tolist()
    return rows


def _record(batch: LogBatch, record: Record) -> Row:
    return RecordRow.of(
        batch,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=_text(record.key),
        key_size=None if record.key is None else len(record.key),
        value_size=None if record.value is None else len(record.value),
        headers=[_text(name) or "" for name, _ in record.headers],
    ).to_row()


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
