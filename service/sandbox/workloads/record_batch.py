"""Record batches as a producer writes them: format v2 (KIP-98), never compressed.

Client libraries do not write what a fault needs, such as a transactional batch outside any
transaction, so batches are laid out here. Not fast: a checksum in plain Python, for few records.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from service.runtime.clock import utc_now

_POLYNOMIAL: Final = 0x82F63B78  # CRC-32C (Castagnoli), reflected: RFC 3720, appendix B.4
_CHECKED: Final = struct.Struct(">hiqqqhii")  # attributes ... record count: what the CRC covers
_FRONT: Final = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
_LENGTH_PREFIX: Final = 12  # base offset and length, which the length itself does not count
_TRANSACTIONAL: Final = 0x10
_MAGIC: Final = 2
_NONE: Final = -1  # of the leader epoch: the leader writes its own


def _shifted(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE: Final = tuple(_shifted(value) for value in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Return a number in zigzag form, seven bits per byte, the lowest first."""
    rest, out = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def now_ms(age: timedelta = timedelta(0)) -> int:
    """Return the timestamp of records that are of this age."""
    return int((utc_now() - age).timestamp() * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Values of one producer, without keys and headers, all of one time."""

    values: Sequence[bytes]  # at least one
    timestamp_ms: int = field(default_factory=now_ms)  # since 1970
    producer_id: int = _NONE
    producer_epoch: int = _NONE
    base_sequence: int = _NONE
    is_transactional: bool

    def encode(self) -> bytes:
        """Return the bytes of the batch."""
        count = len(self.values)
        checked = _CHECKED.pack(
            _TRANSACTIONAL if self.is_transactional else 0,
            count - 1,
            self.timestamp_ms,
            self.timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            count,
        ) + b"".join(_record(delta, value) for delta, value in enumerate(self.values))
        length = _FRONT.size - _LENGTH_PREFIX + len(checked)
        return _FRONT.pack(0, length, _NONE, _MAGIC, crc32c(checked)) + checked


def _record(offset_delta: int, value: bytes) -> bytes:
    # Attributes, timestamp delta, offset delta, no key, value, no headers.
    inner = b"\x00" + varint(0) + varint(offset_delta) + varint(-1)
    inner += varint(len(value)) + value + varint(0)
    return varint(len(inner)) + inner
