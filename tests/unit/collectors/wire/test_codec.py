"""Frames, headers, and answers that cannot be read."""

from __future__ import annotations

import struct

import pytest

from collectors.wire import api as all_apis
from collectors.wire import codec
from collectors.wire.api import API_VERSIONS, LIST_OFFSETS, SASL_HANDSHAKE, Api
from tests.fuzz.newer import encode_tags, everywhere
from tests.unit.collectors.wire.messages import list_offsets_answer, sasl_handshake_answer

FLEXIBLE_TAGS = 1
UNKNOWN_SERVER_ERROR = -1
APIS = [value for value in vars(all_apis).values() if isinstance(value, Api)]
BODY = list_offsets_answer({"orders": [(0, 0, 5, 1), (1, 6, -1, -1)]})


@pytest.mark.parametrize(
    ("api", "version", "tags"),
    [(LIST_OFFSETS, 6, FLEXIBLE_TAGS), (API_VERSIONS, 3, FLEXIBLE_TAGS), (SASL_HANDSHAKE, 1, 0)],
)
def test_a_frame_counts_everything_behind_its_length(api: Api, version: int, tags: int) -> None:
    framed = codec.frame(api, version, 77, b"body")
    (length,) = struct.unpack_from(">i", framed)
    assert length == len(framed) - 4
    assert struct.unpack_from(">hhih", framed, 4) == (api.key, version, 77, len(codec.CLIENT_ID))
    assert framed[14:] == codec.CLIENT_ID + b"\0" * tags + b"body"


@pytest.mark.parametrize(
    ("api", "version", "tags", "length"),
    [
        (LIST_OFFSETS, 6, b"\0", 5),
        (LIST_OFFSETS, 6, encode_tags(everywhere()), 4 + len(encode_tags(everywhere()))),
        (SASL_HANDSHAKE, 1, b"", 4),
        (API_VERSIONS, 3, b"", 4),
        (API_VERSIONS, 0, b"", 4),
    ],
)
def test_an_answers_header_has_tags_when_flexible_but_never_for_api_versions(
    api: Api, version: int, tags: bytes, length: int
) -> None:
    answer = b"\0\0\0\x4d" + tags + b"body"
    assert codec.body_position(api, version, answer) == length


@pytest.mark.parametrize("tags", [b"", b"\1\7", b"\1\7\2x", b"\xff\xff\xff\xff\xff\1"])
def test_a_header_that_does_not_end_is_unreadable(tags: bytes) -> None:
    with pytest.raises(codec.UnreadableError):
        codec.body_position(LIST_OFFSETS, 6, b"\0\0\0\x4d" + tags)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_the_codec_knows_every_version_that_we_offer(api: Api) -> None:
    for version in range(api.oldest, api.newest + 1):
        assert codec.message(api, version, f"{api.name}Request").__version__ == version


def test_an_answer_is_decoded_to_its_own_class() -> None:
    answer = codec.decode(SASL_HANDSHAKE, 1, sasl_handshake_answer("PLAIN", "SCRAM-SHA-256"))
    assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256")


@pytest.mark.parametrize("length", range(len(BODY)))
def test_part_of_an_answer_is_unreadable(length: int) -> None:
    with pytest.raises(codec.UnreadableError, match="ListOffsets v10"):
        codec.decode(LIST_OFFSETS, 10, BODY[:length])


def test_a_tagged_field_that_the_codec_does_not_know_costs_nothing_else_of_the_answer() -> None:
    whole = codec.decode(LIST_OFFSETS, 10, BODY)
    assert codec.decode(LIST_OFFSETS, 10, BODY[:-1] + b"\x01\x63\x01\x2a") == whole


def test_an_error_that_newer_brokers_have_added_is_that_of_its_partition_only() -> None:
    body = BODY.replace(b"\0\0\0\1\0\6", b"\0\0\0\1\x03\xe8")
    [topic] = codec.decode(LIST_OFFSETS, 10, body).topics
    assert [int(entry.error_code) for entry in topic.partitions] == [0, UNKNOWN_SERVER_ERROR]


def test_an_error_code_is_told_by_kafkas_name() -> None:
    assert codec.error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert codec.error_name(9999) == "error 9999"
