"""Encodes answers as newer brokers would: with tagged fields and an error code that the codec does not know.

The codec writes only what it knows, so that parts are written here, and their fields by the codec.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import Field, fields
from io import BytesIO
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)
from kio.serial._serialize import get_field_writer
from kio.serial.writers import write_compact_array_length, write_legacy_array_length

from collectors.wire.api import Api
from collectors.wire.cursor import encode_uvarint
from tests.fuzz.answers import entity

Tags = list[tuple[int, bytes]]
NewTags = Callable[[], Tags]  # what a part has beside its own fields
LOWEST: Final = 9  # of the tags that are added; all known ones are lower
NUMBERS: Final = (LOWEST, LOWEST + 1, 127, 128, 1 << 31, (1 << 32) - 1)
LATER_ERROR: Final = b"\x03\xe8"  # in place of every UNKNOWN_SERVER_ERROR, as which it is read
CONTENTS: Final = (b"", b"\0", b"\xff", b"x" * 130)


def everywhere() -> Tags:
    """Return what the parts of an answer get, each of them."""
    return [(LOWEST, b"\0"), (300, b"newer" * 30)]


def at_random(draw: random.Random) -> NewTags:
    """Return a function that gives a part none, one or many."""

    def tags() -> Tags:
        count = draw.choice((*[0] * 12, 1, 1, 2, len(NUMBERS)))  # few, for the sake of time
        return [(tag, draw.choice(CONTENTS)) for tag in sorted(draw.sample(NUMBERS, count))]

    return tags


def newer(draw: random.Random, api: Api, version: int) -> bytes:
    """Return the body of an answer with such fields."""
    return encode_with(entity(draw, api, version), at_random(draw))


def encode_with(part: Any, tags: NewTags) -> bytes:
    """Return the bytes of a part, whose tagged fields are its own and those that `tags` adds."""
    buffer = BytesIO()
    _write_part(buffer, part, tags)
    return buffer.getvalue()


def encode_tags(tags: Tags) -> bytes:
    """Return tagged fields, with their number."""
    written = (encode_uvarint(tag) + encode_uvarint(len(data)) + data for tag, data in tags)
    return encode_uvarint(len(tags)) + b"".join(written)


def _write_part(buffer: BytesIO, part: Any, tags: NewTags) -> None:
    tagged: Tags = []
    for entry in fields(part):
        tag, value = get_field_tag(entry), getattr(part, entry.name)
        if tag is None:
            _write_field(buffer, entry, part, value, tags)
        elif value not in (entry.default, None):
            content = BytesIO()
            _write_field(content, entry, part, value, tags)
            tagged.append((tag, content.getvalue()))
    if part.__flexible__:
        buffer.write(encode_tags([*sorted(tagged), *tags()]))


def _write_field(buffer: BytesIO, entry: Field[Any], part: Any, value: Any, tags: NewTags) -> None:
    is_tag = get_field_tag(entry) is not None
    match classify_field(entry):
        case EntityField():
            if is_optional(entry) and not is_tag:
                buffer.write(b"\xff" if value is None else b"\x01")
            if value is not None:
                _write_part(buffer, value, tags)
        case EntityTupleField():
            length = None if value is None else len(value)
            if part.__flexible__:
                write_compact_array_length(buffer, length)
            else:
                write_legacy_array_length(buffer, -1 if length is None else length)  # type: ignore[arg-type]
            for element in value or ():
                _write_part(buffer, element, tags)
        case _ if value is ErrorCode.unknown_server_error:
            buffer.write(LATER_ERROR)
        case _:
            write = get_field_writer(
                entry, flexible=part.__flexible__, is_request_header=False, is_tag=is_tag
            )
            write(buffer, value)
