"""Logs as blocks of columns, for what follows them batch by batch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from rules.facts.log_files import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchBlock,
    ControlRecord,
    ControlType,
    FileProblem,
    LogBatch,
    ProblemKind,
)
from rules.facts.log_findings import LogFindings
from rules.facts.log_folders import PartitionLog, SegmentFile
from rules.log_files.analysis import LogAnalysis

PATH = "/d/orders-3/00000000000000000000.log"
PROBLEM = FileProblem(kind=ProblemKind.BAD_LENGTH, path=PATH, position=0, why="damaged")
Part = LogBatch | FileProblem


def batch(base: int, last: int | None = None, **fields: Any) -> LogBatch:
    """Return a batch of producer 7 in its epoch 0, unless `fields` say otherwise."""
    end = base if last is None else last
    values: dict[str, Any] = {
        "path": PATH, "position": 100 * base, "size": 100, "base_offset": base, "last_offset": end, "leader_epoch": 0,
        "crc": 0, "attributes": 0, "first_timestamp_ms": 1000, "max_timestamp_ms": 2000, "producer_id": 7,
        "producer_epoch": 0, "base_sequence": base, "record_count": end - base + 1,
    }  # fmt: skip
    return LogBatch(**values | fields)


def transactional(base: int, last: int | None = None, **fields: Any) -> LogBatch:
    """Return a batch within a transaction."""
    return batch(base, last, **{"attributes": TRANSACTIONAL_BIT} | fields)


def marker(offset: int, *, is_commit: bool = True, **fields: Any) -> LogBatch:
    """Return the marker that ends the transaction of producer 7."""
    kind = ControlType.COMMIT if is_commit else ControlType.ABORT
    values = {"control": ControlRecord(kind, 3), "base_sequence": None} | fields
    return batch(offset, attributes=TRANSACTIONAL_BIT | CONTROL_BIT, **values)


def block(batches: list[LogBatch]) -> BatchBlock:
    """Return batches as columns."""
    names = [each.name for each in fields(BatchBlock) if each.name not in ("path", "controls")]
    columns = {
        name: np.array(
            [-1 if getattr(row, name) is None else getattr(row, name) for row in batches], np.int64
        )
        for name in names
    }
    controls = {place: row.control for place, row in enumerate(batches) if row.control is not None}
    return BatchBlock(path=batches[0].path, controls=controls, **columns)


def analyse(
    *segments: list[Part], log: PartitionLog | None = None, at_once: int = 99
) -> LogFindings:
    """Follow segments, each named after its first batch, in blocks of so many batches."""
    bases = [
        next((part.base_offset for part in segment if isinstance(part, LogBatch)), 0)
        for segment in segments
    ]
    bases[0] = min(bases[0], 0) if log is None else bases[0]
    analysis = LogAnalysis(log or PartitionLog(folder="/d/orders-3"))
    for base, segment in zip(bases, segments, strict=True):
        analysis.begin_segment(SegmentFile(f"/d/orders-3/{base:020}.log", base))
        _add(analysis, segment, at_once)
    return analysis.findings()


def _add(analysis: LogAnalysis, parts: list[Part], at_once: int) -> None:
    batches: list[LogBatch] = []
    for part in [*parts, None]:
        if batches and (not isinstance(part, LogBatch) or len(batches) == at_once):
            analysis.add(block(batches))
            batches = []
        if isinstance(part, LogBatch):
            batches.append(part)
        elif part is not None:
            analysis.add_problem(part)
