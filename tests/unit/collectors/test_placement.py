"""Placement from DescribeTopicPartitions, page by page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from collectors.placement import Pattern, PlacementReader
from collectors.session import Session
from collectors.translate import topic_id_of
from collectors.wire.api import DESCRIBE_TOPIC_PARTITIONS, METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.partitions import Partitions
from tests.factories import broker
from tests.unit.collectors.fake_pool import FakePool, Prepared, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

ID = UUID(int=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One partition as a broker describes it."""

    partition: int
    leader: int = 1
    epoch: int = 5
    isr: tuple[int, ...] = (1, 2)
    elr: tuple[int, ...] | None = None


def placed_by(reader: PlacementReader, session: Session, wanted: Pattern | None) -> Partitions:
    return reader.collect(session, wanted).partitions


def topic(name: str | None, *placed: Placed, error: int = 0, internal: bool = False) -> Any:
    entry = part(DESCRIBE_TOPIC_PARTITIONS, 0, "DescribeTopicPartitionsResponsePartition")
    described = part(DESCRIBE_TOPIC_PARTITIONS, 0, "DescribeTopicPartitionsResponseTopic")
    return described(
        error_code=ErrorCode(error),
        name=name,
        topic_id=ID,
        is_internal=internal,
        partitions=tuple(
            entry(
                error_code=ErrorCode(0),
                partition_index=one.partition,
                leader_id=one.leader,
                leader_epoch=one.epoch,
                replica_nodes=(1, 2),
                isr_nodes=one.isr,
                eligible_leader_replicas=one.elr,
                last_known_elr=one.elr,
                offline_replicas=(),
            )
            for one in placed
        ),
        topic_authorized_operations=0,
    )


def page(*topics: Any) -> bytes:
    return answer(
        DESCRIBE_TOPIC_PARTITIONS,
        0,
        throttle_time=NO_THROTTLE,
        topics=tuple(topics),
        next_cursor=None,
    )


def session_with(prepared: Prepared) -> Session:
    return session_of(broker(1), answers={(broker(1), DESCRIBE_TOPIC_PARTITIONS): prepared})


ORDERS = topic("orders", Placed(partition=0), Placed(partition=1, leader=-1, elr=(2,)))


def test_every_partition_unchanged_at_its_own_row_whatever_the_order() -> None:
    body = page(
        topic("orders", Placed(partition=1, leader=2), Placed(partition=0)),
        topic("__internal", Placed(partition=0, epoch=9), internal=True),
    )
    placed = placed_by(PlacementReader(), session_with(body), None)
    assert placed.index.topics == ("__internal", "orders")
    assert placed.internal == (True, False)
    assert placed.leader.to_list() == [1, 1, 2]
    assert placed.leader_epoch.to_list() == [9, 5, 5]
    assert placed.replicas.to_list() == [[1, 2]] * 3
    assert placed.topic_id(2) == topic_id_of(ID)


def test_a_partition_without_a_leader_has_none_and_an_empty_elr_is_known() -> None:
    placed = placed_by(PlacementReader(), session_with(page(ORDERS)), None)
    assert placed.leader.to_list() == [1, None]
    assert placed.elr.to_list() == [[], [2]]
    assert placed.min_insync_replicas.to_list() == [None, None]


def test_a_partition_that_the_answer_left_out_is_unknown_not_shifted() -> None:
    body = page(topic("orders", Placed(partition=2), Placed(partition=0)))
    placed = placed_by(PlacementReader(), session_with(body), None)
    assert placed.leader.to_list() == [1, None, 1]
    assert placed.isr.to_list() == [[1, 2], None, [1, 2]]
    assert placed.elr.to_list() == [[], None, []]


@pytest.mark.parametrize("number", [2**31 - 1, 105, -1])
def test_a_number_that_no_partition_can_have_makes_the_list_unreadable(number: int) -> None:
    reader = PlacementReader()
    before = placed_by(reader, session_with(page(ORDERS)), None)
    body = page(topic("orders", Placed(partition=number), Placed(partition=0)))
    for _ in range(2):
        session = session_with(body)
        placement = reader.collect(session, None)
        assert placement.partitions is before
        assert not placement.is_complete
        [gap] = session.gaps
        assert (gap.cause, gap.scope) == (GapCause.UNREADABLE, GapScope.PLACEMENT)
        assert gap.why == f"topic orders has 2 partitions, of which one is number {number}"


def test_a_topic_with_an_error_or_without_a_name_is_left_out() -> None:
    body = page(ORDERS, topic("gone", Placed(partition=0), error=3), topic(None))
    assert placed_by(PlacementReader(), session_with(body), None).index.topics == ("orders",)


def test_a_pattern_has_to_match_the_whole_name() -> None:
    body = page(ORDERS, topic("orders-dlq", Placed(partition=0)))
    placed = placed_by(PlacementReader(), session_with(body), re.compile("orders"))
    assert placed.index.topics == ("orders",)


def test_an_unchanged_answer_gives_the_same_object_whatever_the_throttle_time() -> None:
    reader, body = PlacementReader(), page(ORDERS)
    first = placed_by(reader, session_with(body), None)
    throttled = b"\0\0\x03\xe8" + body[4:]
    assert placed_by(reader, session_with(throttled), None) is first


def test_a_changed_answer_or_pattern_gives_another_object() -> None:
    reader = PlacementReader()
    first = placed_by(reader, session_with(page(ORDERS)), None)
    filtered = placed_by(reader, session_with(page(ORDERS)), re.compile("o.*"))
    moved = page(topic("orders", Placed(partition=0, leader=2, epoch=6)))
    after = placed_by(reader, session_with(moved), re.compile("o.*"))
    assert first is not filtered
    assert after.leader.to_list() == [2]


def test_a_list_that_cannot_be_read_leaves_the_remembered_placement_and_a_gap() -> None:
    reader = PlacementReader()
    first = placed_by(reader, session_with(page(ORDERS)), None)
    silent = session_with(Failure(GapCause.TIMEOUT, "late"))
    assert placed_by(reader, silent, None) is first
    assert [(gap.what, gap.cause, gap.scope) for gap in silent.gaps] == [
        ("the list of topics", GapCause.TIMEOUT, GapScope.PLACEMENT)
    ]


def test_without_a_memory_an_unreadable_list_is_empty_with_a_gap() -> None:
    silent = session_with(Failure(GapCause.TIMEOUT, "late"))
    assert len(placed_by(PlacementReader(), silent, None)) == 0
    assert len(silent.gaps) == 1


def test_only_a_list_read_to_its_end_without_errors_is_complete() -> None:
    reader = PlacementReader()
    assert reader.collect(session_with(page(ORDERS)), None).is_complete
    rejected = session_with(page(ORDERS, topic("hidden", error=29)))
    hidden = reader.collect(rejected, None)
    assert (hidden.is_complete, hidden.is_read) == (False, True)
    assert [(gap.topic, gap.cause) for gap in rejected.gaps] == [
        ("hidden", GapCause.NOT_AUTHORIZED)
    ]
    remembered = reader.collect(session_with(Failure(GapCause.TIMEOUT, "late")), None)
    assert (remembered.is_complete, remembered.is_read) == (False, False)


def test_groups_of_a_leaderless_offsets_partition_are_a_gap_also_behind_a_filter() -> None:
    lost = topic("__consumer_offsets", Placed(partition=0), Placed(partition=1, leader=-1))
    session = session_with(page(lost, ORDERS))
    placed_by(PlacementReader(), session, re.compile("orders"))
    [gap] = session.gaps
    assert gap.what == "groups coordinated by __consumer_offsets-1"
    assert (gap.cause, gap.scope) == (GapCause.NO_LEADER, GapScope.GROUPS)


def test_an_older_broker_is_asked_for_metadata_and_its_elr_is_unknown() -> None:
    entry = part(METADATA, 12, "MetadataResponsePartition")
    described = part(METADATA, 12, "MetadataResponseTopic")
    one = entry(
        error_code=ErrorCode(0),
        partition_index=0,
        leader_id=1,
        leader_epoch=4,
        replica_nodes=(1, 2),
        isr_nodes=(1,),
        offline_replicas=(),
    )
    orders = described(
        error_code=ErrorCode(0),
        name="orders",
        topic_id=UUID(int=0),
        is_internal=False,
        partitions=(one,),
    )
    body = answer(
        METADATA,
        12,
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id="c",
        controller_id=1,
        topics=(orders,),
    )
    session = session_of(
        broker(1), answers={(broker(1), METADATA): body}, too_old=[DESCRIBE_TOPIC_PARTITIONS]
    )
    placed = placed_by(PlacementReader(), session, None)
    assert (placed.isr.to_list(), placed.elr.to_list()) == ([[1]], [None])
    assert placed.topic_id(0) is None
    assert session.gaps == [], "such a broker has no ELR: nothing is missing"
    assert isinstance(session.pool, FakePool)
    assert session.pool.queries == {"Metadata": 1}
