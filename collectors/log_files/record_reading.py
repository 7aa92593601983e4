"""Reads the records of batches in a file: whole batches, decompressed, one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from collectors.log_files.opening import not_readable
from collectors.wire.records import Record, read_batch
from rules.facts.log_files import BatchBlock, FileProblem, LogBatch, ProblemKind

RecordsOf: TypeAlias = tuple[LogBatch, tuple[Record, ...]]


def read_records_of(path: Path, block: BatchBlock) -> Iterator[RecordsOf | FileProblem]:
    """Yield each batch of a block with its records, of a control batch none, or why it cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        yield not_readable(path, exc)
        return
    try:
        for batch in block.rows():
            yield _records(number, batch)
    except OSError as exc:
        yield not_readable(path, exc)
    finally:
        os.close(number)


def _records(number: int, batch: LogBatch) -> RecordsOf | FileProblem:
    raw = os.pread(number, batch.size, batch.position)
    if len(raw) < batch.size:
        return _problem(batch, ProblemKind.TRUNCATED, "was cut off while the file was read")
    records = read_batch(raw)
    if isinstance(records, str):
        return _problem(batch, ProblemKind.BAD_RECORD, records)
    return batch, records


def _problem(batch: LogBatch, kind: ProblemKind, why: str) -> FileProblem:
    return FileProblem(
        kind=kind,
        path=batch.path,
        position=batch.position,
        end=batch.position + batch.size,
        why=f"the batch with offsets {batch.base_offset} to {batch.last_offset} {why}",
    )
