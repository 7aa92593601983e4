"""Reads `<offset>.snapshot`: the states of producers before an offset.

A broker writes one when it rolls a segment and when it stops in order, and restores its memory from it.
Source: ProducerStateManager (version 1, unchanged since 0.11).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import crc32c

from collectors.log_files.opening import base_offset_of, read_bytes
from collectors.translate import present
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_states import ProducerEntry, ProducerSnapshot

VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")  # version, CRC-32C of what follows it, number of entries
_CHECKED_FROM: Final = 6
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset
_ENTRY: Final = struct.Struct(">qhiqiqiq")


def read_snapshot(path: Path) -> ProducerSnapshot:
    """Read a snapshot; one that is damaged has what could be read, and a problem."""
    offset = base_offset_of(path) or 0
    data = read_bytes(path)
    if isinstance(data, FileProblem):
        return ProducerSnapshot(path=str(path), offset=offset, problems=(data,))
    if len(data) < _HEAD.size:
        why = f"the snapshot ends within its head: {len(data)} bytes"
        return _damaged(path, offset, ProblemKind.TRUNCATED, 0, why)
    version, checksum, count = _HEAD.unpack_from(data)
    if version != VERSION:
        why = f"version {version} of a snapshot is not known"
        return _damaged(path, offset, ProblemKind.UNKNOWN_FORMAT, 0, why)
    held = (len(data) - _HEAD.size) // _ENTRY.size
    producers = tuple(_entry(data, row) for row in range(max(0, min(count, held))))
    problem = _problem(path, data, checksum=checksum, count=count, held=held)
    problems = () if problem is None else (problem,)
    return ProducerSnapshot(path=str(path), offset=offset, producers=producers, problems=problems)


def _problem(
    path: Path, data: bytes, *, checksum: int, count: int, held: int
) -> FileProblem | None:
    if count > held:
        position = _HEAD.size + held * _ENTRY.size
        why = f"the snapshot ends within its entries: {held:,} of {count:,} are there"
        return FileProblem(kind=ProblemKind.TRUNCATED, path=str(path), position=position, why=why)
    if count < 0 or crc32c.crc32c(data[_CHECKED_FROM:]) != checksum:
        why = "the checksum of the snapshot is wrong: its bytes are damaged"
        return FileProblem(kind=ProblemKind.BAD_CHECKSUM, path=str(path), position=0, why=why)
    return None


def _damaged(
    path: Path, offset: int, kind: ProblemKind, position: int, why: str
) -> ProducerSnapshot:
    problem = FileProblem(kind=kind, path=str(path), position=position, why=why)
    return ProducerSnapshot(path=str(path), offset=offset, problems=(problem,))


def _entry(data: bytes, row: int) -> ProducerEntry:
    fields = _ENTRY.unpack_from(data, _HEAD.size + row * _ENTRY.size)
    producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator, first = fields
    return ProducerEntry(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_sequence=present(last_sequence),
        last_offset=present(last_offset),
        offset_delta=delta,
        timestamp_ms=present(timestamp_ms),
        coordinator_epoch=present(coordinator),
        current_transaction_start_offset=present(first),
    )
