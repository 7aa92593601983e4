"""Checks the lengths in an answer against the bytes that are left, before the codec library reads it.

The library allocates an array as long as it is announced, before it reads the first element: ten
bytes may ask for 32 GiB, and an allocation that fails ends the process. So an answer is walked first,
by the same message definitions: nothing is decoded, lengths are read and what they measure is skipped.
What the library does not know, of a newer broker, costs it the whole answer: tagged fields are left out,
and an error code becomes UNKNOWN_SERVER_ERROR, as in Kafka's clients.
Why here: docs/decisions/0008-lengths-before-the-codec.md. Source: KIP-482 and Kafka's protocol guide.
"""

from __future__ import annotations

import re
import struct
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, Union, get_args, get_origin

from collectors.wire.cursor import uvarint
from collectors.wire.edits import Edits

_SIZES: Final = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "timedelta_i32"), 4),
    **dict.fromkeys(("int64", "uint64", "timedelta_i64", "datetime_i64", "float64"), 8),
    "uuid": 16,
}
_NULL: Final = -1
_NULL_PART: Final = 0xFF
_CODE: Final = struct.Struct(">h")  # of an error
_UNKNOWN_SERVER_ERROR: Final = _CODE.pack(-1)
_LONG: Final = 0x80  # a length of one byte is below it
_COMMON_TEXT: Final = 64  # bytes
_COMMON_COUNT: Final = 8  # of elements, such as the replicas of a partition
_MANY: Final = 16  # parts

# body, position, what is changed in the body -> position behind
_Skip = Callable[[bytes, int, Edits], int]
_ReadLength = Callable[[bytes, int], tuple[int, int]]  # body, position -> length, position behind


class LengthError(Exception):
    """An answer announces more than it holds, or leaves out what has to be there."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How to skip a message, a part of one or a field.

    `common` is a regular expression of what it nearly always is: it skips an array of parts ten times
    as fast. It matches only what `skip` would skip as well.
    """

    skip: _Skip
    least: int  # bytes that it takes at least
    is_fixed: bool = False  # it always takes `least` bytes
    common: bytes | None = None


def prepare(kind: Any, body: bytes) -> bytes:
    """Return the body of an answer as the codec library can read it: `kind` is its dataclass there.

    Raises:
        LengthError: the codec is not to read this body.
    """
    edits = Edits()
    try:
        end = _message(kind).skip(body, 0, edits)
    except (IndexError, struct.error) as exc:
        raise LengthError("it ends early") from exc
    except OverflowError as exc:
        raise LengthError(str(exc)) from exc
    if end > len(body):
        raise LengthError("it ends early")
    return edits.apply(body)


@cache
def _message(kind: type[Any]) -> _Layout:
    is_flexible: bool = kind.__flexible__
    layouts = {entry.name: _field(entry, is_flexible=is_flexible) for entry in fields(kind)}
    tags = {e.metadata["tag"]: layouts.pop(e.name) for e in fields(kind) if "tag" in e.metadata}
    merged: list[_Layout] = []
    for layout in layouts.values():
        if merged and merged[-1].is_fixed and layout.is_fixed:
            layout = _fixed(merged.pop().least + layout.least)  # noqa: PLW2901 - neighbours as one
        merged.append(layout)
    return _sequence([*merged, _tags(tags)] if is_flexible else merged)


def _field(entry: Field[Any], *, is_flexible: bool) -> _Layout:
    kind, is_nullable = _without_none(entry.type)
    is_array = get_origin(kind) is tuple
    if is_array:
        kind = get_args(kind)[0]
    is_part = is_dataclass(kind)
    if is_part:
        part = _message(kind)
    elif entry.metadata["kafka_type"] == "error_code":
        part = _error_code(kind)
    else:
        part = _primitive(entry.metadata["kafka_type"], is_flexible=is_flexible)
    if is_array:
        return _array(part, is_nullable=is_nullable, is_flexible=is_flexible)
    return _nullable_part(part) if is_part and is_nullable else part


def _without_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) not in (types.UnionType, Union):
        return kind, False
    return next(part for part in get_args(kind) if part is not types.NoneType), True


def _primitive(kafka_type: str, *, is_flexible: bool) -> _Layout:
    if kafka_type in _SIZES:
        return _fixed(_SIZES[kafka_type])
    if is_flexible:
        return _Layout(_skip_compact, 1, common=_counted(1, _COMMON_TEXT, may_be_null=True))
    return _measured(_int16_length, 2) if kafka_type == "string" else _measured(_int32_length, 4)


def _error_code(known: Iterable[int]) -> _Layout:
    codes = frozenset(map(_CODE.pack, known))

    def skip(body: bytes, position: int, edits: Edits) -> int:
        end = position + _CODE.size
        if body[position:end] not in codes:
            edits.replace(position, end, _UNKNOWN_SERVER_ERROR)
        return end

    return _Layout(skip, _CODE.size, common=_any_of(codes))


def _any_of(codes: Iterable[bytes]) -> bytes:
    """Return the expression of one of these pairs of bytes."""
    seconds: dict[int, bytes] = {}
    for first, second in codes:
        seconds[first] = seconds.get(first, b"") + b"\\x%02x" % second
    return b"(?:" + b"|".join(b"\\x%02x[%b]" % pair for pair in seconds.items()) + b")"


def _compact_length(body: bytes, position: int) -> tuple[int, int]:
    value, position = uvarint(body, position)
    return value - 1, position


def _plain_length(layout: struct.Struct) -> _ReadLength:
    def read(body: bytes, position: int) -> tuple[int, int]:
        (length,) = layout.unpack_from(body, position)
        if length < _NULL:
            raise LengthError(f"it announces a length of {length}")
        return length, position + layout.size

    return read


_int16_length: Final = _plain_length(struct.Struct(">h"))
_int32_length: Final = _plain_length(struct.Struct(">i"))


def _counted(size: int, most: int, *, may_be_null: bool) -> bytes:
    """Return the expression of up to `most` elements of a fixed size behind a compact length."""
    counts = [b"\\x%02x.{%d}" % (count + 1, count * size) for count in range(most + 1)]
    return b"(?>" + b"|".join([b"\\x00"] * may_be_null + counts) + b")"


def _fixed(size: int) -> _Layout:
    common = b".{%d}" % size
    return _Layout(lambda _, position, __: position + size, size, is_fixed=True, common=common)


def _skip_compact(body: bytes, position: int, _: Edits) -> int:
    """Skip a text, or bytes, of a flexible version: there are more of them than of anything else."""
    first = body[position]
    if first < _LONG:
        return position + (first or 1)  # 0: null; otherwise one more than the bytes behind it
    length, position = _compact_length(body, position)
    return position + max(length, 0)  # null may be written in more than one byte


def _measured(read_length: _ReadLength, least: int) -> _Layout:
    """Return the layout of a text, or of bytes; whether it may be null is left to the codec."""

    def skip(body: bytes, position: int, _: Edits) -> int:
        length, position = read_length(body, position)
        return position + length if length > 0 else position

    return _Layout(skip, least)


def _sequence(layouts: Sequence[_Layout]) -> _Layout:
    if len(layouts) == 1:
        return layouts[0]
    skips = tuple(layout.skip for layout in layouts)

    def skip(body: bytes, position: int, edits: Edits) -> int:
        for skip_next in skips:
            position = skip_next(body, position, edits)
        return position

    parts = [layout.common for layout in layouts if layout.common is not None]
    common = b"".join(parts) if len(parts) == len(layouts) else None
    return _Layout(skip, sum(layout.least for layout in layouts), common=common)


def _nullable_part(part: _Layout) -> _Layout:
    def skip(body: bytes, position: int, edits: Edits) -> int:
        is_null = body[position] == _NULL_PART
        return position + 1 if is_null else part.skip(body, position + 1, edits)

    return _Layout(skip, 1)


def _array(element: _Layout, *, is_nullable: bool, is_flexible: bool) -> _Layout:
    read_length, least = (_compact_length, 1) if is_flexible else (_int32_length, 4)

    def skip(body: bytes, position: int, edits: Edits) -> int:
        count, position = read_length(body, position)
        if count < 0:
            if is_nullable:
                return position
            raise LengthError("an array is null that must not be")
        left = len(body) - position
        if count * element.least > left:
            raise LengthError(f"it announces {count} elements where {left} bytes are left")
        if element.is_fixed:
            return position + count * element.least
        return _skip_elements(element, count, body, position, edits)

    is_short = element.is_fixed and is_flexible
    common = _counted(element.least, _COMMON_COUNT, may_be_null=is_nullable) if is_short else None
    return _Layout(skip, least, common=common)


def _skip_elements(element: _Layout, count: int, body: bytes, position: int, edits: Edits) -> int:
    is_worthwhile = element.common is not None and count >= _MANY
    blocks = _blocks(element.common) if is_worthwhile else ()
    while count:
        for size, block in blocks:
            while count >= size and (skipped := block.match(body, position)):
                position, count = skipped.end(), count - size
        if count:
            position, count = element.skip(body, position, edits), count - 1
    return position


@cache
def _blocks(common: bytes) -> tuple[tuple[int, re.Pattern[bytes]], ...]:
    """Return expressions of so many elements, most first."""
    counted = {size: b"(?:%b){%d}" % (common, size) for size in (_MANY, 1)}
    return tuple((size, re.compile(text, re.DOTALL)) for size, text in counted.items())


def _tags(fields_by_tag: Mapping[int, _Layout]) -> _Layout:
    """Return the layout of tagged fields; those that are not known are left out."""

    def skip(body: bytes, position: int, edits: Edits) -> int:
        if body[position] == 0:  # nearly always
            return position + 1
        begin, first = position, edits.count
        count, position = uvarint(body, position)
        kept, behind_count = count, position
        for _ in range(count):
            tag_begin = position
            tag, position = uvarint(body, position)
            if tag in fields_by_tag:
                position = _skip_tag(tag, fields_by_tag[tag], body, position, edits)
                continue
            size, position = uvarint(body, position)
            position += size
            edits.remove(tag_begin, position)
            kept -= 1
        if kept < count:
            edits.replace_number(begin, behind_count, kept, at=first)
        return position

    return _Layout(skip, 1, common=b"\\x00")


def _skip_tag(tag: int, layout: _Layout, body: bytes, position: int, edits: Edits) -> int:
    """Skip a known tagged field, from its size on."""
    begin, first = position, edits.count
    size, position = uvarint(body, position)
    behind = layout.skip(body, position, edits)
    if behind != position + size:
        raise LengthError(f"its tagged field {tag} has another length than it says")
    if removed := edits.removed_since(first):
        edits.replace_number(begin, position, size - removed, at=first)
    return behind
