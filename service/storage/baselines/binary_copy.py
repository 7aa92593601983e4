"""Rows in the format of PostgreSQL's binary COPY, encoded from NumPy columns without per-value Python.

A row has its small fields, whose lengths differ with every text, then its arrays of `real`.
Rows with arrays of equal length are encode_rows together; only joining the rows goes over them one by one.

Source: PostgreSQL's manual, COPY, binary format; array_send in utils/adt/arrayfuncs.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension
TRAILER: Final = b"\xff\xff"
NULL: Final = -1
FLOAT4: Final = 700  # the type's number in pg_type
WORD: Final = np.dtype(">u4")
LENGTH: Final = np.dtype(">i4")
# Of an array: length, dimensions, whether it has nulls, type, size, first index.
HEADER_WORDS: Final = 6

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """One small column: where in a block the bytes of each row are."""

    block: Bytes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]  # NULL for a null


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrays:
    """One column of arrays of float32: row i has `counts[i]` values from `starts[i]` on."""

    values: NDArray[np.float32]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]  # 0 for a null


class Texts:
    """A dictionary of texts, of which every row has one or none; without NUL, which PostgreSQL rejects."""

    def __init__(self, texts: Sequence[str]) -> None:
        stored = [text.encode() for text in texts]
        self._block = np.frombuffer(b"".join(stored), np.uint8)
        self._lengths = np.array([*map(len, stored), NULL], np.int64)
        self._starts = np.concatenate([np.cumsum(self._lengths[:-1]) - self._lengths[:-1], [0]])

    def field(self, numbers: NDArray[np.integer]) -> Field:
        """Return a column; NULL means no text."""
        return Field(
            block=self._block, starts=self._starts[numbers], lengths=self._lengths[numbers]
        )


def number_field(values: NDArray[np.generic], kind: str, valid: Flags | None = None) -> Field:
    """Return a column of numbers; `kind` is NumPy's for the database's type, as "i8" for bigint."""
    block = np.ascontiguousarray(values.astype(np.dtype(f">{kind}"))).view(np.uint8)
    width = np.dtype(kind).itemsize
    lengths = np.full(values.size, width, np.int64)
    if valid is not None:
        lengths[~valid] = NULL
    return Field(block=block, starts=np.arange(values.size) * width, lengths=lengths)


def encode_rows(fields: Sequence[Field], arrays: Sequence[Arrays]) -> bytes:
    """Return rows: the fields in their order, then the arrays.

    The arrays of one row are of one length, or all null.
    """
    heads, tails = _heads(fields, len(fields) + len(arrays)), _tails(arrays)
    return b"".join(chain.from_iterable(zip(heads, tails, strict=True)))


def _heads(fields: Sequence[Field], columns: int) -> list[memoryview]:
    lengths = np.array([field.lengths for field in fields])
    taken = lengths.clip(min=0) + LENGTH.itemsize
    ends = np.cumsum(2 + taken.sum(axis=0))
    begins = ends - 2 - taken.sum(axis=0)
    out = np.empty(int(ends[-1]) if ends.size else 0, np.uint8)
    out[begins], out[begins + 1] = columns >> 8, columns & 0xFF
    place = begins + 2
    for field, length, total in zip(fields, lengths, taken, strict=True):
        length_bytes = length.astype(LENGTH).view(np.uint8).reshape(-1, LENGTH.itemsize)
        out[place[:, None] + np.arange(LENGTH.itemsize)] = length_bytes
        _scatter(out, place + LENGTH.itemsize, field)
        place = place + total
    whole = out.data
    return [whole[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]


def _scatter(out: Bytes, places: NDArray[np.int64], field: Field) -> None:
    lengths = field.lengths.clip(min=0)
    inside = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[np.repeat(places, lengths) + inside] = field.block[
        np.repeat(field.starts, lengths) + inside
    ]


def _tails(arrays: Sequence[Arrays]) -> list[bytes | memoryview]:
    counts = arrays[0].counts
    nothing = np.full(len(arrays), NULL, LENGTH).tobytes()
    tails: list[bytes | memoryview] = [nothing] * counts.size
    for count in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == count)
        words = np.empty((rows.size, len(arrays), HEADER_WORDS + 2 * count), WORD)
        size = HEADER_WORDS * 4 - 4 + 8 * count
        words[:, :, :HEADER_WORDS] = (size, 1, 0, FLOAT4, count, 1)
        words[:, :, HEADER_WORDS::2] = 4
        for number, column in enumerate(arrays):
            chosen = column.starts[rows][:, None] + np.arange(count)
            words[:, number, HEADER_WORDS + 1 :: 2] = column.values.view(np.uint32)[chosen]
        whole, width = memoryview(words.tobytes()), words[0].nbytes
        for place, row in enumerate(rows.tolist()):
            tails[row] = whole[place * width : (place + 1) * width]
    return tails
