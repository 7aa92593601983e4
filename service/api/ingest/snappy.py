"""Unpacks Snappy's block format, in which Promtail and Grafana Alloy send.

A block begins with its length when unpacked, which is held against the limit before any of it is.
Source: google/snappy, format_description.txt.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from service.api.ingest.push import varint

MAX_LENGTH_BYTES: Final = 5


class SnappyError(ValueError):
    """These bytes are no block; it never leaves the HTTP API."""


def unsnapped(block: bytes, limit: int) -> bytes:
    """Return what a block holds.

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
    except OSError as exc:  # all that Arrow says of it
        raise SnappyError("is damaged") from exc
    return data
