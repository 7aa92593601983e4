"""Decompresses a body within a limit: a few kilobytes may expand to gigabytes.

Snappy's block format is what Promtail and Grafana Alloy send. A block begins with its decompressed length,
which is checked against the limit first. Source: google/snappy, format_description.txt.
"""

from __future__ import annotations

import zlib
from http import HTTPStatus
from typing import Final

import pyarrow as pa

from collectors.broker_log.files import compression_of
from service.api.core.problems import ProblemError
from service.api.ingest.push import varint

MAX_UNPACKED: Final = 8 * 1024 * 1024  # bytes; twice the limit of an uncompressed body
MAX_MEMBERS: Final = 16  # each costs a copy of all that follows
MAX_LENGTH_BYTES: Final = 5  # of a Snappy block
WITH_GZIP_HEADER: Final = 31  # for zlib, with the largest window
PLAIN: Final = frozenset({"", "identity"})
PACKED: Final = frozenset({"gzip", "x-gzip"})
# Header of the answer to another encoding: RFC 9110, 15.5.16.
ACCEPTED: Final = {"Accept-Encoding": "gzip, identity"}


def unpack(body: bytes, encoding: str) -> bytes:
    """Return a body without its Content-Encoding.

    Raises:
        ProblemError: the encoding is unknown or not declared, or the body is damaged or too large.
    """
    name = encoding.strip().lower()
    if name in PLAIN:
        return _plain(body)
    if name not in PACKED:
        raise _unsupported("Content-Encoding may be gzip, or there is none")
    return _plain(_gunzip(body))


def _plain(body: bytes) -> bytes:
    """Return a body that is not compressed; compressed bytes are no log lines."""
    kind = compression_of(body)
    if kind is not None:
        raise _unsupported(f"the body is {kind}, which no Content-Encoding says; it may say gzip")
    return body


def _unsupported(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, headers=ACCEPTED)


def too_large() -> ProblemError:
    """Return the problem of a body that is too large when it is unpacked."""
    detail = f"a body may have {MAX_UNPACKED} bytes when it is unpacked"
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def _gunzip(body: bytes) -> bytes:
    content, rest = bytearray(), body
    for _ in range(MAX_MEMBERS):
        if not rest:
            return bytes(content)
        member = zlib.decompressobj(WITH_GZIP_HEADER)
        try:
            content += member.decompress(rest, MAX_UNPACKED + 1 - len(content))
        except zlib.error as exc:
            raise _damaged("no gzip, or damaged") from exc
        if len(content) > MAX_UNPACKED:
            raise too_large()
        if not member.eof:
            raise _damaged("the gzip data ends too early")
        rest = member.unused_data
    if rest:
        raise _damaged(f"more than {MAX_MEMBERS} gzip members")
    return bytes(content)


def _damaged(why: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, f"the body cannot be unpacked: {why}")


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
