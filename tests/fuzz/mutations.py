"""Damages bytes as a faulty or hostile peer would: other lengths, other bytes, more or fewer of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Final

MEBIBYTE: Final = 1 << 20
# As lengths they announce far more than there is, less than nothing, nothing in more bytes, or do not end.
LENGTHS: Final = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x08",
    b"\xff" * 12,
    b"\x00",
    b"\x80\x00",
    *(struct.pack(">i", number) for number in (-(2**31), -2, -1, 2**20, 2**28, 2**31 - 1)),
    *(struct.pack(">h", number) for number in (-(2**15), -1, 2**15 - 1)),
)
# Tagged fields of a newer broker, in place of none: known or not, empty, long, without an end, too many.
TAGS: Final = (
    b"\x01\x09\x00",
    b"\x01\x00\x01\x00",
    b"\x02\x7f\x01x\xff\xff\xff\xff\x0f\x82\x01" + b"y" * 130,
    b"\x01\x09\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x08" + b"\x09\x00" * 1024,
)
LONG: Final = tuple(bytes([byte]) * MEBIBYTE for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF))
UNENDING: Final = LONG[-2:]  # numbers of variable length


def mutated(draw: random.Random, bodies: Sequence[bytes]) -> bytes:
    """Return one of these bodies, damaged."""
    content = bytearray(draw.choice(bodies))
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        _damage(draw, content)
    return bytes(content)


def _damage(draw: random.Random, content: bytearray) -> None:
    begin = draw.randrange(len(content) + 1)
    end = min(begin + draw.randrange(1, 9), len(content))
    match draw.randrange(7):
        case 0:
            content[begin : begin + 1] = draw.randbytes(1)
        case 1:
            content[begin:begin] = draw.choice(LENGTHS)
        case 2:
            length = draw.choice(LENGTHS)
            content[begin : begin + len(length)] = length
        case 3:
            del content[begin:]
        case 4:
            del content[begin:end]
        case 5:
            place = max(content.find(0, begin), begin)
            content[place : place + 1] = draw.choice(TAGS)
        case _:
            content[begin:end] = content[begin:end] * draw.choice((2, 3, 500))
