"""Reads `<base offset>.txnindex`: the transactions that were aborted in a segment.

The other indexes (`.index`, `.timeindex`) only give positions in a segment, which is read as a whole.
Source: TransactionIndex and AbortedTxn of the broker (version 0).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from collectors.log_files.opening import base_offset_of, read_bytes
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_states import AbortedEntry, TransactionIndex

VERSION: Final = 0
_ENTRY: Final = struct.Struct(">hqqqq")  # version, producer id, first, last, last stable offset


def read_transaction_index(path: Path) -> TransactionIndex:
    """Read the entries up to the first that cannot be read."""
    base = base_offset_of(path) or 0
    data = read_bytes(path)
    if isinstance(data, FileProblem):
        return TransactionIndex(path=str(path), base_offset=base, problems=(data,))
    aborted: list[AbortedEntry] = []
    problems: list[FileProblem] = []
    whole = len(data) - len(data) % _ENTRY.size
    for position in range(0, whole, _ENTRY.size):
        version, producer_id, first, last, stable = _ENTRY.unpack_from(data, position)
        if version != VERSION:
            why = f"version {version} of an entry of the transaction index is not known"
            problems.append(_problem(path, ProblemKind.UNKNOWN_FORMAT, position, why))
            break
        aborted.append(AbortedEntry(producer_id, first, last, stable))
    if whole < len(data):
        why = f"the transaction index ends within an entry, of which {len(data) - whole} bytes are there"
        problems.append(_problem(path, ProblemKind.TRUNCATED, whole, why))
    return TransactionIndex(
        path=str(path), base_offset=base, aborted=tuple(aborted), problems=tuple(problems)
    )


def _problem(path: Path, kind: ProblemKind, position: int, why: str) -> FileProblem:
    return FileProblem(kind=kind, path=str(path), position=position, why=why)
