"""What the codec is given to read: every valid answer, and none that announces more than it holds."""

from __future__ import annotations

import random
from typing import Final

import pytest

from collectors.wire import codec, lengths
from collectors.wire.api import (
    API_VERSIONS,
    DESCRIBE_QUORUM,
    LIST_GROUPS,
    METADATA,
    SASL_HANDSHAKE,
    Api,
)
from collectors.wire.lengths import LengthError
from tests.fuzz.answers import answer_versions, encoded, entity
from tests.fuzz.mutations import mutated
from tests.fuzz.newer import at_random, encode_with, everywhere, newer
from tests.unit.collectors.wire.messages import part

VERSIONS: Final = tuple(answer_versions())
IDS: Final = [f"{api.name}-{version}" for api, version in VERSIONS]
DRAWN: Final = 20
LONG_NULL: Final = b"\x80\0"  # 0 in two bytes
MOST: Final = b"\xff\xff\xff\xff\x0f"  # 2^32 - 1


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=IDS)
def test_a_valid_answer_is_read_as_it_was_written(api: Api, version: int) -> None:
    draw = random.Random(version)
    for _ in range(DRAWN):
        written = entity(draw, api, version)
        assert codec.decode(api, version, codec.encode(written)) == written


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=IDS)
def test_what_is_skipped_at_once_would_be_skipped_one_by_one(
    api: Api, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(version)
    bodies = [encoded(draw, api, version) for _ in range(DRAWN)]
    bodies += [newer(draw, api, version) for _ in range(DRAWN)]
    bodies += [mutated(draw, bodies) for _ in range(DRAWN)]
    at_once = [prepared(api, version, body) for body in bodies]
    monkeypatch.setattr(lengths, "_MANY", 1 << 40)
    assert [prepared(api, version, body) for body in bodies] == at_once


def prepared(api: Api, version: int, body: bytes) -> bytes | str:
    try:
        return lengths.prepare(part(api, version, f"{api.name}Response"), body)
    except LengthError as exc:
        return str(exc)


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=IDS)
def test_what_newer_brokers_add_costs_nothing_else_wherever_it_is(api: Api, version: int) -> None:
    draw = random.Random(version)
    for _ in range(DRAWN):
        written = entity(draw, api, version)
        for tags in (everywhere, at_random(draw)):
            body = encode_with(written, tags)
            assert codec.without_newer(api, version, body) == codec.encode(written)
            assert codec.decode(api, version, body) == written


@pytest.mark.parametrize(
    ("api", "version", "body", "why"),
    [
        (API_VERSIONS, 3, b"\0\0" + MOST, "announces 4294967294 elements where 0 bytes are left"),
        (API_VERSIONS, 0, b"\0\0\x7f\xff\xff\xff", "announces 2147483647 elements"),
        (API_VERSIONS, 0, b"\0\0\xff\xff\xff\xfe", "announces a length of -2"),
        (API_VERSIONS, 0, b"\0\0\xff\xff\xff\xff", "null that must not be"),
        (SASL_HANDSHAKE, 1, b"\0\0\0\0\0\1\xff\xfe", "announces a length of -2"),
        (LIST_GROUPS, 4, b"\0\0\0\0\0\0\0\0", "null that must not be"),
        (LIST_GROUPS, 4, b"\0\0\0\0\0\0" + b"\xff" * 9, "more than 32 bits"),
        (LIST_GROUPS, 4, b"\0\0\0\0\0\0\1\1\7\2x", "it ends early"),
        (LIST_GROUPS, 4, b"\0\0\0\0\0\0\1\2\7\1x", "it ends early"),
        (API_VERSIONS, 3, b"\0\0\1\0\0\0\0\1\1\7" + b"\0" * 8, "another length than it says"),
        (METADATA, 12, b"\0\0\0\0\x05" + b"\0" * 40, "announces 4 elements where 40 bytes"),
        (DESCRIBE_QUORUM, 2, b"\0\0" + LONG_NULL + MOST, "announces 4294967294 elements"),
    ],
)
def test_an_answer_that_announces_what_it_does_not_hold_is_unreadable(
    api: Api, version: int, body: bytes, why: str
) -> None:
    with pytest.raises(codec.UnreadableError, match=why):
        codec.decode(api, version, body)


def test_a_null_text_of_more_bytes_than_it_needs_is_skipped_as_the_codec_reads_it() -> None:
    no_error, rest = b"\0\0", b"\1\1\0"  # no topics, no nodes, no tags
    long = codec.decode(DESCRIBE_QUORUM, 2, no_error + LONG_NULL + rest)
    assert long == codec.decode(DESCRIBE_QUORUM, 2, no_error + b"\0" + rest)
