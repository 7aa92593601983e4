"""A digest over the rows of a run, in their order: equal content, equal digest, however it is cut.

Every column has hashes of its own for which values are there, how long they are and what they are,
fed with plain values rather than with Arrow's buffers: neither padding nor the cut into batches
matters. It imports no pyspark: whoever publishes a run checks it with the same code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rules.baseline.baseline_run import DIGEST_BYTES


class RowDigest:
    """A digest of some columns, fed with batches in order."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = {str(name): _ColumnDigest() for name in columns}
        self.rows = 0

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add the next rows; other columns than those of the digest are ignored.

        Raises:
            KeyError: a column is missing.
        """
        for name, digest in self._columns.items():
            column = batch.column(name)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                digest.add(chunk)
        self.rows += batch.num_rows

    def hex(self) -> str:
        """Return the digest of all rows so far."""
        total = hashlib.blake2b(self.rows.to_bytes(8, "little"), digest_size=DIGEST_BYTES)
        for name, digest in self._columns.items():
            total.update(name.encode() + b"\0" + digest.bytes())
        return total.hexdigest()


class _ColumnDigest:
    def __init__(self) -> None:
        self._is_there, self._lengths, self._values = (
            hashlib.blake2b(digest_size=DIGEST_BYTES) for _ in range(3)
        )

    def add(self, values: pa.Array) -> None:
        self._is_there.update(_plain(values.is_valid()))
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            self._add_binary(values.cast(pa.binary()).cast(pa.large_binary()))
            return
        zero = pa.scalar(0).cast(values.type)
        self._values.update(_plain(pc.fill_null(values, zero) if values.null_count else values))

    def _add_binary(self, values: pa.LargeBinaryArray) -> None:
        filled = pc.fill_null(values, b"") if values.null_count else values
        offsets = np.frombuffer(filled.buffers()[1], np.int64)
        offsets = offsets[filled.offset : filled.offset + len(filled) + 1]
        self._lengths.update(np.diff(offsets).tobytes())
        data = filled.buffers()[2]
        if data is not None and len(filled):
            self._values.update(memoryview(data)[int(offsets[0]) : int(offsets[-1])])

    def bytes(self) -> bytes:
        parts = (self._is_there, self._lengths, self._values)
        return b"".join(part.digest() for part in parts)


def _plain(values: pa.Array) -> bytes:
    return np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes()
