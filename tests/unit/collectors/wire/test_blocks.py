"""The fast blocks say exactly what the general codec says, or that they cannot."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from collectors.wire import blocks, codec
from collectors.wire.api import LIST_OFFSETS, OFFSET_FETCH
from collectors.wire.blocks import (
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_END_OFFSET,
    LOG_START_OFFSET,
    GroupBlock,
    IrregularError,
    OffsetKind,
    TopicBlock,
    TopicRequest,
)
from tests.factories import ints
from tests.unit.collectors.wire.messages import (
    CommitEntry,
    OffsetEntry,
    list_offsets_answer,
    offset_fetch_answer,
)

KINDS = (LOG_START_OFFSET, LAST_STABLE_OFFSET, HIGH_WATERMARK, LOG_END_OFFSET)
VERSIONS = range(LIST_OFFSETS.oldest, LIST_OFFSETS.newest + 1)
MANY = 300  # the array's length then needs two bytes
NAMES = ("orders", "a", "zahlungen-äöü", "注文", "t" * 249)


def request_by_codec(topics: list[TopicRequest], kind: OffsetKind, version: int) -> bytes:
    partition = codec.message(LIST_OFFSETS, version, "ListOffsetsPartition")
    topic = codec.message(LIST_OFFSETS, version, "ListOffsetsTopic")
    asked = tuple(
        topic(
            name=block.topic,
            partitions=tuple(
                partition(partition_index=p, current_leader_epoch=e, timestamp=kind.timestamp)
                for p, e in zip(block.partition.tolist(), block.leader_epoch.tolist(), strict=True)
            ),
        )
        for block in topics
    )
    timeout: dict[str, Any] = {"timeout": timedelta(seconds=5)} if version >= 10 else {}
    request = codec.message(LIST_OFFSETS, version, "ListOffsetsRequest")
    return codec.encode(
        request(replica_id=kind.replica_id, isolation_level=kind.isolation, topics=asked, **timeout)
    )


def asked_topics() -> list[TopicRequest]:
    draw = random.Random(7)
    blocks_of_all_sizes = [
        TopicRequest(
            name,
            np.arange(count, dtype=np.int64),
            ints(*(draw.choice([-1, 0, draw.randrange(2**31)]) for _ in range(count))),
        )
        for name, count in zip(NAMES, (1, 127, 128, MANY, 2), strict=True)
    ]
    return [*blocks_of_all_sizes, TopicRequest("empty", ints(), ints())]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_request_is_byte_for_byte_the_codecs(version: int, kind: OffsetKind) -> None:
    topics = asked_topics()
    made = blocks.list_offsets_body(topics, kind, version=version, timeout_ms=5000)
    assert made == request_by_codec(topics, kind, version)


def test_a_request_for_nothing_is_the_codecs_too() -> None:
    made = blocks.list_offsets_body([], HIGH_WATERMARK, version=10, timeout_ms=5000)
    assert made == request_by_codec([], HIGH_WATERMARK, 10)


def test_only_the_four_kinds_that_kafka_tells_apart_are_asked_for() -> None:
    asked = {kind.name: (kind.replica_id, kind.isolation, kind.timestamp) for kind in KINDS}
    assert asked == {
        "log_start_offset": (-1, 0, -2),
        "last_stable_offset": (-1, 1, -1),
        "high_watermark": (-1, 0, -1),
        "log_end_offset": (-2, 0, -1),
    }


def offset_topics(seed: int) -> dict[str, list[OffsetEntry]]:
    draw = random.Random(seed)
    return {
        f"{name}{seed}": [
            (
                draw.randrange(2**31),
                draw.choice([0, 0, 0, 3, 6, 74, -1]),
                draw.choice([-1, 0, draw.randrange(2**63)]),
                draw.choice([-1, draw.randrange(2**31)]),
            )
            for _ in range(draw.choice([0, 1, 5, 127, MANY]))
        ]
        for name in NAMES
    }


def entries_of(block: TopicBlock) -> list[OffsetEntry]:
    columns = (block.partition, block.error, block.offset, block.leader_epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(4))
def test_a_list_offsets_answer_reads_as_the_codec_reads_it(version: int, seed: int) -> None:
    body = list_offsets_answer(offset_topics(seed), version=version)
    expected = {
        topic.name: [
            (int(p.partition_index), int(p.error_code), int(p.offset), int(p.leader_epoch))
            for p in topic.partitions
        ]
        for topic in codec.decode(LIST_OFFSETS, version, body).topics
    }
    read = {block.topic: entries_of(block) for block in blocks.read_list_offsets(body)}
    assert read == expected == offset_topics(seed)


def test_very_many_topics_are_all_read_in_their_order() -> None:
    topics: dict[str, list[OffsetEntry]] = {f"t{n}": [(0, 0, n, 1)] for n in range(MANY)}
    read = blocks.read_list_offsets(list_offsets_answer(topics))
    assert [block.topic for block in read] == list(topics)
    assert [int(block.offset[0]) for block in read] == list(range(MANY))


def test_the_throttle_time_is_not_taken_for_an_answer() -> None:
    body = bytearray(list_offsets_answer({"a": [(0, 0, 5, 1)]}))
    body[:4] = b"\x7f\xff\xff\xff"
    assert entries_of(blocks.read_list_offsets(body)[0]) == [(0, 0, 5, 1)]


Groups = dict[str, tuple[int, dict[str, list[CommitEntry]]]]


def commit_groups(seed: int) -> Groups:
    draw = random.Random(seed)

    def commits() -> list[CommitEntry]:
        return [
            (
                partition,
                draw.choice([0, 0, 3]),
                draw.choice([-1, draw.randrange(2**63)]),
                draw.choice([-1, draw.randrange(2**31)]),
                draw.choice([None, ""]),
            )
            for partition in range(draw.choice([0, 1, MANY]))
        ]

    return {
        f"group-{name}": (draw.choice([0, 15, 30]), {topic: commits() for topic in NAMES[:size]})
        for size, name in enumerate(NAMES)
    }


def groups_read(read: list[GroupBlock]) -> Groups:
    return {
        block.group_id: (
            block.error,
            {
                topic.topic: [(*entry, None) for entry in entries_of(topic)]
                for topic in block.topics
            },
        )
        for block in read
    }


def groups_by_codec(body: bytes, version: int) -> Groups:
    return {
        group.group_id: (
            int(group.error_code),
            {
                topic.name: [
                    (
                        int(p.partition_index),
                        int(p.error_code),
                        int(p.committed_offset),
                        int(p.committed_leader_epoch),
                        None,
                    )
                    for p in topic.partitions
                ]
                for topic in group.topics
            },
        )
        for group in codec.decode(OFFSET_FETCH, version, body).groups
    }


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("seed", range(4))
def test_an_offset_fetch_answer_reads_as_the_codec_reads_it(version: int, seed: int) -> None:
    body = offset_fetch_answer(commit_groups(seed), version=version)
    read = groups_read(blocks.read_offset_fetch(body))
    assert read == groups_by_codec(body, version)
    assert {name: error for name, (error, _) in read.items()} == {
        name: error for name, (error, _) in commit_groups(seed).items()
    }


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("metadata", ["x", "m" * 127, "m" * 300, "ü"])
def test_metadata_text_is_reported_wherever_it_unchanged(position: int, metadata: str) -> None:
    commits: list[CommitEntry] = [(p, 0, 7, 1, metadata if p == position else "") for p in range(3)]
    body = offset_fetch_answer({"g": (0, {"orders": commits})})
    with pytest.raises(IrregularError):
        blocks.read_offset_fetch(body)


SMALL_OFFSETS = list_offsets_answer({"a": [(0, 0, 5, 1), (1, 6, -1, -1)], "b": [(0, 0, 9, 2)]})
SMALL_COMMITS = offset_fetch_answer(
    {"g": (0, {"a": [(0, 0, 5, 1, "")]}), "h": (0, {"b": [(0, 0, 6, -1, None)]})}
)


@pytest.mark.parametrize("length", range(len(SMALL_OFFSETS)))
def test_no_part_of_a_list_offsets_answer_passes_for_the_whole(length: int) -> None:
    with pytest.raises(IrregularError):
        blocks.read_list_offsets(SMALL_OFFSETS[:length])


@pytest.mark.parametrize("length", range(len(SMALL_COMMITS)))
def test_no_part_of_an_offset_fetch_answer_passes_for_the_whole(length: int) -> None:
    with pytest.raises(IrregularError):
        blocks.read_offset_fetch(SMALL_COMMITS[:length])


def tags_from_the_end(body: bytes, back: int) -> bytes:
    """Put one tagged field (number 0, one byte) where an empty list of them is."""
    place = len(body) - back
    assert body[place] == 0
    return body[:place] + b"\x01\x00\x01\x2a" + body[place + 1 :]


@pytest.mark.parametrize("back", [1, 2, 3], ids=["answer", "topic", "partition"])
def test_tagged_fields_of_a_list_offsets_answer_are_reported(back: int) -> None:
    body = tags_from_the_end(SMALL_OFFSETS, back)
    with pytest.raises(IrregularError, match="tagged fields"):
        blocks.read_list_offsets(body)


@pytest.mark.parametrize("back", [1, 2, 5, 6], ids=["answer", "group", "topic", "partition"])
def test_tagged_fields_of_an_offset_fetch_answer_are_reported(back: int) -> None:
    body = tags_from_the_end(SMALL_COMMITS, back)
    with pytest.raises(IrregularError, match="tagged fields"):
        blocks.read_offset_fetch(body)


def test_a_name_that_is_no_text_is_reported() -> None:
    body = list_offsets_answer({"ab": [(0, 0, 5, 1)]}).replace(b"ab", b"\xff\xfe")
    with pytest.raises(IrregularError):
        blocks.read_list_offsets(body)


def test_a_count_that_no_body_could_hold_is_reported() -> None:
    with pytest.raises(IrregularError, match="ends early"):
        blocks.read_list_offsets(b"\0\0\0\0\x02\x02a\xff\xff\xff\xff\x0f\0\0")
