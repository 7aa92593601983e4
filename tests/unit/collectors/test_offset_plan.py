"""Whom to ask for which offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collectors.offset_plan import (
    TIMEOUT_MS,
    UNFENCED,
    BrokerPlan,
    make_plan,
    rows_to_follow,
)
from collectors.wire import blocks
from collectors.wire.blocks import HIGH_WATERMARK, LOG_END_OFFSET, LOG_START_OFFSET, TopicRequest
from rules.facts.column import Column, Ragged
from rules.facts.partitions import Partitions
from tests.factories import broker, partitions

Asked = dict[str, list[tuple[int, int]]]


def asked(topics: tuple[TopicRequest, ...]) -> Asked:
    """Return topic -> [(partition, fenced epoch)]; a topic twice would be an error."""
    told = {
        block.topic: list(zip(block.partition.tolist(), block.leader_epoch.tolist(), strict=True))
        for block in topics
    }
    assert len(told) == len(topics)
    return told


@pytest.fixture
def placed() -> Partitions:
    """Return three brokers' partitions: orders-1 lacks a follower, payments-0 has no leader."""
    return partitions(
        {"orders": 3, "payments": 2},
        leader=Column.of([1, 2, 1, None, 1]),
        leader_epoch=Column.of([5, 6, 7, 8, None]),
        replicas=Ragged.of([(1, 2), (2, 1), (3, 1), (1, 2), (1, 3)]),
        isr=Ragged.of([(1, 2), (2,), (3, 1), (1, 2), (1, 3)]),
    )


def plan_of(placed: Partitions, broker_id: int, *, all_replicas: bool = False) -> BrokerPlan:
    follow = rows_to_follow(placed, all_replicas=all_replicas)
    return make_plan(broker(broker_id), placed, follow)


def test_only_partitions_at_risk_are_followed(placed: Partitions) -> None:
    risky = rows_to_follow(placed, all_replicas=False)
    assert np.flatnonzero(risky).tolist() == [1]


def test_a_stuck_partition_is_at_risk_too_unless_it_has_no_followers(placed: Partitions) -> None:
    stuck = np.array([True, False, False, False, False])
    assert np.flatnonzero(rows_to_follow(placed, stuck, all_replicas=False)).tolist() == [0, 1]
    alone = replace(placed, replicas=Ragged.of([(1,)] * 5), isr=Ragged.of([(1,)] * 5))
    assert not rows_to_follow(alone, stuck, all_replicas=False).any()


def test_on_request_all_are_followed(placed: Partitions) -> None:
    assert rows_to_follow(placed, all_replicas=True).all()


def test_an_unknown_isr_is_no_risk_seen(placed: Partitions) -> None:
    unknown = replace(placed, isr=Ragged.of([None] * 5))
    assert not rows_to_follow(unknown, all_replicas=False).any()


def test_a_leader_is_asked_for_what_it_leads_fenced_by_its_epoch(placed: Partitions) -> None:
    plan = plan_of(placed, 1)
    assert asked(plan.led) == {"orders": [(0, 5), (2, 7)], "payments": [(1, UNFENCED)]}
    assert plan.led_rows.tolist() == [0, 2, 4]


def test_a_follower_at_risk_is_asked_for_its_log_end_unfenced(placed: Partitions) -> None:
    assert asked(plan_of(placed, 1).hosted) == {
        "orders": [(0, 5), (1, UNFENCED), (2, 7)],
        "payments": [(1, UNFENCED)],
    }


def test_on_request_every_replica_is_asked_for_its_log_end(placed: Partitions) -> None:
    assert asked(plan_of(placed, 3, all_replicas=True).hosted) == {
        "orders": [(2, UNFENCED)],
        "payments": [(1, UNFENCED)],
    }
    assert asked(plan_of(placed, 2, all_replicas=True).hosted) == {
        "orders": [(0, UNFENCED), (1, 6)],
        "payments": [(0, UNFENCED)],
    }


def test_a_partition_is_asked_once_even_where_the_leader_is_also_a_replica(
    placed: Partitions,
) -> None:
    for broker_id in (1, 2, 3):
        plan = plan_of(placed, broker_id, all_replicas=True)
        for partitions_asked in asked(plan.hosted).values():
            numbers = [partition for partition, _ in partitions_asked]
            assert len(numbers) == len(set(numbers))


def test_a_leader_outside_the_replica_set_is_asked_all_the_same() -> None:
    moving = partitions({"orders": 1}, replicas=Ragged.of([(2, 3)]))
    plan = plan_of(moving, 1)
    assert asked(plan.hosted) == {"orders": [(0, 5)]}
    assert plan.replica_of_row.tolist() == [-1]


def test_every_row_knows_which_flat_replica_the_broker_is(placed: Partitions) -> None:
    plan = plan_of(placed, 1)
    assert plan.replica_of_row.tolist() == [0, 3, 5, 6, 8]
    assert placed.replicas.values[plan.replica_of_row].tolist() == [1] * 5


def test_a_broker_with_nothing_to_say_is_not_asked(placed: Partitions) -> None:
    quiet = plan_of(placed, 3)
    assert not quiet.has_work(HIGH_WATERMARK)
    assert not quiet.has_work(LOG_END_OFFSET)
    following = plan_of(placed, 3, all_replicas=True)
    assert not following.has_work(LOG_START_OFFSET)
    assert following.has_work(LOG_END_OFFSET)


def test_a_cluster_without_topics_asks_nobody() -> None:
    assert not plan_of(Partitions.none(), 1, all_replicas=True).has_work(LOG_END_OFFSET)


def test_a_body_asks_for_what_its_kind_needs_and_is_encoded_once(placed: Partitions) -> None:
    plan = plan_of(placed, 1)
    build = plan.body(LOG_END_OFFSET)
    expected = blocks.list_offsets_body(
        plan.hosted, LOG_END_OFFSET, version=10, timeout_ms=TIMEOUT_MS
    )
    assert build(10) == expected
    assert plan.body(LOG_END_OFFSET)(10) is build(10)
    assert build(9) == blocks.list_offsets_body(
        plan.hosted, LOG_END_OFFSET, version=9, timeout_ms=TIMEOUT_MS
    )
    watermark = blocks.list_offsets_body(
        plan.led, HIGH_WATERMARK, version=10, timeout_ms=TIMEOUT_MS
    )
    assert plan.body(HIGH_WATERMARK)(10) == watermark
