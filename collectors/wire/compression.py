"""Decompresses the records of a batch, up to a size: gzip by the standard library, the others by pyarrow.

A batch says neither how long its records are nor that they end: what would need more memory than any batch of
a broker is an error. Source: `CompressionType` of the client; snappy in the frames of snappy-java, or bare as librdkafka
writes it; LZ4 and Zstandard frames.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Final

from collectors.wire.cursor import uvarint
from rules.facts.log_files import Codec

MAX_BYTES: Final = 256 * 1024 * 1024  # of the records of one batch
_GZIP_WINDOW: Final = 31  # zlib's number for a gzip header
_SNAPPY_JAVA: Final = b"\x82SNAPPY\0"
_SNAPPY_JAVA_HEADER: Final = 16  # its magic, and two versions
_BLOCK_LENGTH: Final = struct.Struct(">i")


class NotDecompressedError(Exception):
    """The records of a batch cannot be decompressed; the text is a clause that says why."""


def decompress(codec: Codec, content: bytes) -> bytes:
    """Return the records of a batch as they were before they were compressed.

    Raises:
        NotDecompressedError: they are damaged or too long, or what reads the codec is not installed.
    """
    if codec is Codec.NONE:
        return content
    read = _READERS.get(codec)
    if read is None:
        raise NotDecompressedError("is compressed in a way that is not known")
    try:
        return read(content)
    except (OSError, ValueError, zlib.error, IndexError, OverflowError, struct.error) as exc:
        raise NotDecompressedError(f"cannot be decompressed ({codec}): {exc}") from exc
    except ImportError as exc:
        raise NotDecompressedError(f"is compressed with {codec}: pyarrow is not installed") from exc


def _gzip(content: bytes) -> bytes:
    reader = zlib.decompressobj(_GZIP_WINDOW)
    whole = _within(reader.decompress(content, MAX_BYTES + 1))
    if not reader.eof:
        raise ValueError("it ends early")
    return whole


def _snappy(content: bytes) -> bytes:
    if not content.startswith(_SNAPPY_JAVA):
        return _snappy_block(content)
    blocks, position, size = [], _SNAPPY_JAVA_HEADER, 0
    while position < len(content):
        (length,) = _BLOCK_LENGTH.unpack_from(content, position)
        start = position + _BLOCK_LENGTH.size
        position = start + length
        if length <= 0 or position > len(content):
            raise ValueError("a block ends early")
        blocks.append(_snappy_block(content[start:position]))
        size += len(blocks[-1])
        _require_size(size)
    return b"".join(blocks)


def _snappy_block(content: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - 100 ms, and seldom needed

    size, _ = uvarint(content, 0)
    _require_size(size)
    block: bytes = pa.decompress(content, decompressed_size=size, codec="snappy", asbytes=True)
    return block


def _framed(codec: Codec) -> Callable[[bytes], bytes]:
    def read(content: bytes) -> bytes:
        import pyarrow as pa  # noqa: PLC0415 - as above

        with pa.CompressedInputStream(pa.BufferReader(content), str(codec)) as stream:
            return _within(stream.read(MAX_BYTES + 1))

    return read


def _within(content: bytes) -> bytes:
    _require_size(len(content))
    return content


def _require_size(size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES:,} bytes")


_READERS: Final[Mapping[Codec, Callable[[bytes], bytes]]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _framed(Codec.LZ4),
    Codec.ZSTD: _framed(Codec.ZSTD),
}
