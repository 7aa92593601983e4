"""Decompresses Snappy's block format, which Promtail and Grafana Alloy send.

A block begins with its decompressed length, which is checked against the limit first.
Source: google/snappy, format_description.txt.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from service.api.ingest.push import varint

MAX_LENGTH_BYTES: Final = 5


class SnappyError(ValueError):
    """The bytes are no Snappy block; it never leaves the HTTP API."""


def unsnap(block: bytes, limit: int) -> bytes:
    """Decompress a block.

    Raises:
        SnappyError: it is damaged.
        OverflowError: it would have more bytes than the limit.
    """
    try:
        size, _ = varint(block[:MAX_LENGTH_BYTES], 0)
    except ValueError as exc:
        raise SnappyError("has no length") from exc
    if size > limit:
        raise OverflowError(size)
    try:
        data: bytes = pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True)
    except OSError as exc:  # the only error that Arrow raises
        raise SnappyError("is damaged") from exc
    return data
