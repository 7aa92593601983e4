"""Finds where reading can go on behind damage: the next batch that the segment's own `.index` names.

A broker notes about every 4 KiB where a batch begins. An index may be preallocated, older than its segment, or damaged
itself, so that a place counts only if a batch with a fitting header is there.
Source: OffsetIndex of the broker (relative offset of the last record, position of the first batch).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

import numpy as np

from collectors.log_files.opening import base_offset_of, read_bytes
from collectors.wire.batches import HEADER, LENGTH_PREFIX, V2_MAGIC
from rules.facts.log_files import FileProblem

_ENTRY: Final = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
_TRIES: Final = 10_000
_FIRST_FIELDS: Final = struct.Struct(">qiib")  # base offset, length, leader epoch, magic


def next_indexed_batch(path: Path, number: int, *, after: int, size: int) -> int | None:
    """Return the position of a batch behind `after`, None if none is known; `number` is the open segment."""
    base = base_offset_of(path)
    data = b"" if base is None else read_bytes(path.with_suffix(".index"))
    if base is None or isinstance(data, FileProblem) or len(data) < _ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, _ENTRY, count=len(data) // _ENTRY.itemsize)
    is_behind = (entries["position"] > after) & (entries["position"] <= size - HEADER.size)
    for entry in np.sort(entries[is_behind], order="position")[:_TRIES]:
        position, last = int(entry["position"]), base + int(entry["relative_offset"])
        if _is_batch(os.pread(number, HEADER.size, position), size - position, base, last):
            return position
    return None


def _is_batch(head: bytes, room: int, base: int, last: int) -> bool:
    if len(head) < HEADER.size:
        return False
    offset, length, _, magic = _FIRST_FIELDS.unpack_from(head)
    is_whole: bool = HEADER.size <= length + LENGTH_PREFIX <= room
    is_between: bool = base <= offset <= last
    return magic == V2_MAGIC and is_whole and is_between
