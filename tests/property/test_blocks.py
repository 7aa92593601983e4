"""parse(render(x)) == x for the two messages that are read as blocks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader

from collectors.wire import blocks, codec
from collectors.wire.api import LIST_OFFSETS, OFFSET_FETCH, Api
from collectors.wire.blocks import (
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_END_OFFSET,
    LOG_START_OFFSET,
    IrregularError,
    OffsetKind,
    TopicBlock,
    TopicRequest,
)
from tests.factories import ints
from tests.property.strategies import (
    asked_topics,
    byte_changes,
    changed,
    commit_groups,
    offset_topics,
)
from tests.unit.collectors.wire.messages import (
    CommitEntry,
    OffsetEntry,
    list_offsets_answer,
    offset_fetch_answer,
)

OffsetTopics = dict[str, list[OffsetEntry]]
CommitGroups = dict[str, tuple[int, dict[str, list[CommitEntry]]]]
kinds = st.sampled_from((LOG_START_OFFSET, LAST_STABLE_OFFSET, HIGH_WATERMARK, LOG_END_OFFSET))
list_offsets_versions = st.integers(LIST_OFFSETS.oldest, LIST_OFFSETS.newest)


def entries_of(block: TopicBlock) -> list[OffsetEntry]:
    columns = (block.partition, block.error, block.offset, block.leader_epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(asked_topics, kinds, list_offsets_versions)
def test_a_request_reads_back_as_it_was_asked(
    asked: dict[str, list[tuple[int, int]]], kind: OffsetKind, version: int
) -> None:
    topics = [
        TopicRequest(name, ints(*(p for p, _ in rows)), ints(*(e for _, e in rows)))
        for name, rows in asked.items()
    ]
    body = blocks.list_offsets_body(topics, kind, version=version, timeout_ms=1234)
    request_class = codec.message(LIST_OFFSETS, version, "ListOffsetsRequest")
    request, length = entity_reader(request_class)(body, 0)
    assert length == len(body)
    assert (request.replica_id, request.isolation_level) == (kind.replica_id, kind.isolation)
    assert {
        topic.name: [(p.partition_index, p.current_leader_epoch) for p in topic.partitions]
        for topic in request.topics
    } == asked
    assert {p.timestamp for topic in request.topics for p in topic.partitions} <= {kind.timestamp}


@given(offset_topics, list_offsets_versions)
def test_a_list_offsets_answer_reads_as_it_was_written(told: OffsetTopics, version: int) -> None:
    read = blocks.read_list_offsets(list_offsets_answer(told, version=version))
    assert {block.topic: entries_of(block) for block in read} == told


@given(commit_groups, st.sampled_from((8, 9)))
def test_an_offset_fetch_answer_reads_as_it_was_written(told: CommitGroups, version: int) -> None:
    read = blocks.read_offset_fetch(offset_fetch_answer(told, version=version))
    assert {
        group.group_id: (
            group.error,
            {topic.topic: entries_of(topic) for topic in group.topics},
        )
        for group in read
    } == {
        name: (
            error,
            {topic: [entry[:4] for entry in entries] for topic, entries in topics.items()},
        )
        for name, (error, topics) in told.items()
    }


@given(commit_groups, st.text(min_size=1, max_size=300), st.data())
def test_metadata_text_is_never_overlooked(
    told: CommitGroups, metadata: str, data: st.DataObject
) -> None:
    places = [
        (group, topic, place)
        for group, (_, topics) in told.items()
        for topic, entries in topics.items()
        for place in range(len(entries))
    ]
    if not places:
        return
    group, topic, place = data.draw(st.sampled_from(places))
    entry = told[group][1][topic][place]
    told[group][1][topic][place] = (*entry[:4], metadata)
    with pytest.raises(IrregularError):
        blocks.read_offset_fetch(offset_fetch_answer(told))


@given(offset_topics, commit_groups, st.data())
def test_no_part_of_an_answer_passes_for_the_whole(
    offsets: OffsetTopics, commits: CommitGroups, data: st.DataObject
) -> None:
    for body, read in (
        (list_offsets_answer(offsets), blocks.read_list_offsets),
        (offset_fetch_answer(commits), blocks.read_offset_fetch),
    ):
        with pytest.raises(IrregularError):
            read(body[: data.draw(st.integers(0, len(body) - 1))])


def by_codec(api: Api, body: bytes) -> Any | None:
    try:
        return codec.decode(api, api.newest, body)
    except codec.UnreadableError:
        return None


@given(offset_topics, byte_changes)
def test_a_damaged_list_offsets_answer_reads_as_the_codec_reads_it_or_not_at_all(
    told: OffsetTopics, changes: list[tuple[int, int]]
) -> None:
    body = changed(list_offsets_answer(told), changes)
    answer = by_codec(LIST_OFFSETS, body)
    try:
        read = blocks.read_list_offsets(body)
    except IrregularError:
        return
    if answer is not None:
        assert [(block.topic, entries_of(block)) for block in read] == [
            (
                topic.name,
                [
                    (p.partition_index, int(p.error_code), p.offset, p.leader_epoch)
                    for p in topic.partitions or ()
                ],
            )
            for topic in answer.topics or ()
        ]


@given(commit_groups, byte_changes)
def test_a_damaged_offset_fetch_answer_reads_as_the_codec_reads_it_or_not_at_all(
    told: CommitGroups, changes: list[tuple[int, int]]
) -> None:
    body = changed(offset_fetch_answer(told), changes)
    answer = by_codec(OFFSET_FETCH, body)
    try:
        read = blocks.read_offset_fetch(body)
    except IrregularError:
        return
    if answer is not None:
        assert [
            (group.group_id, group.error, [(t.topic, entries_of(t)) for t in group.topics])
            for group in read
        ] == [
            (
                group.group_id,
                int(group.error_code),
                [
                    (
                        topic.name,
                        [
                            (
                                p.partition_index,
                                int(p.error_code),
                                p.committed_offset,
                                p.committed_leader_epoch,
                            )
                            for p in topic.partitions or ()
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in answer.groups or ()
        ]
