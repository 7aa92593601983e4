"""Reads Loki's push in Protocol Buffers: streams of labels, each with lines.

Only what is needed is read: `PushRequest.streams` (1), of a stream `labels` (1) and `entries` (2), of
an entry `line` (2). Source: grafana/loki, pkg/push/push.proto.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

STREAMS: Final = 1  # numbers of fields
LABELS: Final = 1
ENTRIES: Final = 2
LINE: Final = 2
MAX_VARINT_BYTES: Final = 10
LABEL: Final = re.compile(r'\b([A-Za-z_]\w{0,200})="((?:[^"\\]|\\.){0,1000})"')


class Kind(IntEnum):
    """How a field is written."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


def push_of(message: bytes) -> Iterator[tuple[Mapping[str, str], bytes]]:
    """Return the lines of a push, each with the labels of its stream.

    Raises:
        ValueError: the message is no push.
    """
    for stream in _of(message, STREAMS):
        labels = _labels(b"".join(_of(stream, LABELS)).decode("utf-8", "replace"))
        for entry in _of(stream, ENTRIES):
            yield labels, b"".join(_of(entry, LINE))


def _of(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the values of one length-delimited field, in order; all others are skipped."""
    place = 0
    while place < len(message):
        tag, place = varint(message, place)
        end = place
        match tag & 7:
            case Kind.VARINT:
                _, end = varint(message, place)
            case Kind.FIXED64:
                end += 8
            case Kind.BYTES:
                size, place = varint(message, place)
                end = place + size
            case Kind.FIXED32:
                end += 4
            case _:
                raise ValueError("a field has an unknown wire type")
        if end > len(message):
            raise ValueError("a field ends too early")
        if tag == number << 3 | Kind.BYTES:
            yield message[place:end]
        place = end


def varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the varint at a position, and the position behind it.

    Raises:
        ValueError: it does not end.
    """
    value = 0
    for count, byte in enumerate(message[place : place + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, place + count + 1
    raise ValueError("a number does not end")


def _labels(text: str) -> Mapping[str, str]:
    """Parse labels in Prometheus' notation."""
    return {name: _unquoted(value) for name, value in LABEL.findall(text)}


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"'))
    except ValueError:  # an escape that only Go knows
        return value
