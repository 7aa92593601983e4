"""What is remembered of each partition, so that a loss can be proven later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Column, Ragged
from rules.facts.last_observation import (
    LastObservation,
    LastObservations,
    overlay_observations,
    remember,
)
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from tests.factories import (
    NOON,
    at,
    epoch_ends,
    ints,
    offsets,
    partitions,
    snapshot,
    topic_id,
    unseen_offsets,
)


def microseconds(seconds: float) -> int:
    return round(at(seconds).timestamp() * SECOND_US)


def observe(observations: LastObservations, row: int) -> LastObservation:
    observation = observations[row]
    assert observation is not None
    return observation


def one(seconds: float = 0, **columns: Any) -> Snapshot:
    """Return a snapshot of orders-0 alone."""
    seen = offsets(1, **columns)
    return snapshot(partitions=partitions({"orders": 1}), offsets=seen, taken_at=at(seconds))


def test_a_observation_holds_everything_that_a_proof_needs() -> None:
    placed = partitions({"orders": 1}, isr=Ragged.of([(1, 2)]), elr=Ragged.of([(3,)]))
    seen = offsets(
        1, last_stable_offset=[90], high_watermark=[95], log_end_offset=[99], leader_epoch=[7]
    )
    observations = remember(snapshot(partitions=placed, offsets=seen))
    assert observations[0] == LastObservation(
        topic_id=topic_id("orders"),
        leader=1,
        leader_epoch=7,
        log_start_offset=0,
        last_stable_offset=90,
        high_watermark=95,
        log_end_offset=99,
        isr=(1, 2),
        elr=(3,),
        observed_at_us=microseconds(0),
    )


def test_time_is_kept_to_the_microsecond() -> None:
    timestamp = NOON + timedelta(microseconds=123_457)
    observations = remember(snapshot(taken_at=timestamp))
    assert observe(observations, 0).observed_at_us % SECOND_US == 123_457


@pytest.mark.parametrize("missing", ["leader_epoch", "last_stable_offset", "high_watermark"])
def test_a_observation_without_one_of_its_parts_is_no_observation(missing: str) -> None:
    unseen: dict[str, Any] = {missing: [None]}
    observations = remember(one(**unseen))
    assert observations[0] is None
    assert observations.observed_at_us.to_list() == [None]
    assert observations.high_watermark.to_list() == [None]


def test_a_observation_without_a_log_end_offset_still_counts() -> None:
    assert observe(remember(one(log_end_offset=[None])), 0).log_end_offset is None


def test_a_partition_that_was_not_seen_keeps_its_older_observation_and_its_older_time() -> None:
    before = remember(one(0, high_watermark=[95], last_stable_offset=[90]))
    now = remember(one(30, high_watermark=[None]), before)
    assert now[0] == before[0]
    assert observe(now, 0).observed_at_us == microseconds(0)


def test_an_unseen_partition_takes_the_isr_that_is_reported_under_the_same_leader() -> None:
    """An ISR may shrink to a leader that crashes before it is queried again."""
    before = remember(one())
    shrunk = partitions({"orders": 1}, isr=Ragged.of([(1,)]), elr=Ragged.of([(3,)]))
    unseen = snapshot(partitions=shrunk, offsets=unseen_offsets(1), taken_at=at(5))
    observation = observe(remember(unseen, before), 0)
    assert (observation.isr, observation.elr) == ((1,), (3,))
    assert observation == replace(observe(before, 0), isr=(1,), elr=(3,)), (
        "all else is of the observation"
    )


@pytest.mark.parametrize("leader", [2, None])
def test_a_report_under_another_leader_or_none_is_of_the_time_after_the_observation(
    leader: int | None,
) -> None:
    before = remember(one())
    moved = partitions({"orders": 1}, leader=Column.of([leader]), isr=Ragged.of([(1, 2)]))
    unseen = snapshot(partitions=moved, offsets=unseen_offsets(1), taken_at=at(5))
    assert observe(remember(unseen, before), 0) == observe(before, 0)


def test_an_unseen_partition_keeps_the_isr_of_its_observation_not_todays() -> None:
    before = remember(one())
    shrunk = partitions({"orders": 1}, isr=Ragged.of([(2,)]), elr=Ragged.of([(1,)]))
    unseen = snapshot(partitions=shrunk, offsets=unseen_offsets(1), taken_at=at(5))
    assert observe(remember(unseen, before), 0).isr == (1, 2, 3)
    assert observe(remember(unseen, before), 0).elr == ()


def test_a_partition_that_was_seen_takes_the_newer_observation() -> None:
    before = remember(one(0))
    now = remember(one(30, high_watermark=[200]), before)
    assert (observe(now, 0).high_watermark, observe(now, 0).observed_at_us) == (
        200,
        microseconds(30),
    )


def test_an_isr_that_was_not_read_anew_keeps_the_time_at_which_it_was() -> None:
    before = remember(one(0))
    now = remember(replace(one(30, high_watermark=[200]), placement_read=False), before)
    assert observe(now, 0).observed_at_us == microseconds(30)
    assert observe(now, 0).isr == (1, 2, 3)
    assert now.context.isr_reported_us.to_list() == [microseconds(0)]
    another_epoch = replace(one(30, leader_epoch=[6]), placement_read=False)
    ended = epoch_ends((0, 5, 100))
    changed = remember(replace(another_epoch, epoch_ends=ended), before)
    assert observe(changed, 0).isr is None


def test_each_partition_is_remembered_by_itself() -> None:
    before = remember(snapshot(offsets=offsets(3, high_watermark=[110, 120, 130])))
    half = offsets(3, high_watermark=[111, None, 131])
    now = remember(snapshot(offsets=half, taken_at=at(9)), before)
    assert now.high_watermark.to_list() == [111, 120, 131]
    times = [microseconds(9), microseconds(0), microseconds(9)]
    assert now.observed_at_us.to_list() == times


def test_a_observation_that_is_missing_twice_is_still_the_first_one() -> None:
    first = remember(one(0))
    third = remember(one(2, high_watermark=[None]), remember(one(1, leader_epoch=[None]), first))
    assert third[0] == first[0]


def test_partitions_that_are_gone_are_forgotten() -> None:
    before = remember(snapshot(partitions=partitions({"gone": 1, "orders": 1})))
    placed = partitions({"orders": 1})
    unseen = snapshot(partitions=placed, offsets=unseen_offsets(1))
    now = remember(unseen, before)
    assert len(now.partitions) == 1
    assert now[0] == before[1]
    back = partitions({"gone": 1, "orders": 1})
    assert remember(snapshot(partitions=back, offsets=unseen_offsets(2)), now)[0] is None


def test_a_topic_created_again_does_not_inherit() -> None:
    before = remember(one())
    again = partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
    unseen = snapshot(partitions=again, offsets=unseen_offsets(1), taken_at=at(1))
    assert remember(unseen, before)[0] is None


def test_a_new_partition_of_a_grown_topic_has_no_observation_yet() -> None:
    before = remember(one())
    grown = snapshot(partitions=partitions({"orders": 2}), offsets=unseen_offsets(2))
    now = remember(grown, before)
    assert now[0] == before[0]
    assert now[1] is None


def test_without_a_memory_an_unseen_partition_has_no_observation() -> None:
    assert remember(snapshot(offsets=unseen_offsets())).observed_at_us.to_list() == [None] * 3


def test_what_is_known_but_not_listed_keeps_its_observation() -> None:
    both = partitions({"orders": 1, "audit": 1}, isr=Ragged.of([(1, 2, 3), (2,)]))
    before = remember(snapshot(partitions=both))
    listed = partitions({"orders": 1})
    remembered = listed.with_topics_of(both, [1])
    now = remember(snapshot(partitions=listed, taken_at=at(9)), before, remembered)
    assert observe(now, 0).observed_at_us == microseconds(9)
    assert now[1] == before[1]
    assert observe(now, 1).isr == (2,)


def moved_on(*, epoch: int = 6, answered: tuple[int, ...] = (), watermark: int = 100) -> Snapshot:
    """Return a round after the first partition's leader changed; `answered` are epochs with a known end."""
    return snapshot(
        taken_at=at(15),
        offsets=offsets(
            leader_epoch=[epoch, 5, 5],
            high_watermark=[watermark, 100, 100],
            last_stable_offset=[watermark, 100, 100],
        ),
        epoch_ends=epoch_ends(*((0, old, 80) for old in answered)),
    )


def test_the_observation_before_a_leader_change_waits_until_its_epochs_end_is_reported() -> None:
    before = remember(snapshot())
    waiting = remember(moved_on(watermark=90), before)
    assert waiting.leader_epoch.to_list() == [5, 5, 5]
    assert waiting.high_watermark.to_list() == [100, 100, 100]
    assert [waiting.observed_at_us[row] for row in range(3)] == [
        microseconds(0),
        microseconds(15),
        microseconds(15),
    ]
    settled = remember(moved_on(answered=(5,), watermark=90), waiting)
    assert settled.leader_epoch.to_list() == [6, 5, 5]
    assert settled.high_watermark.to_list() == [90, 100, 100]


def test_it_waits_over_further_changes_and_over_answers_about_others() -> None:
    before = remember(snapshot())
    waiting = remember(moved_on(epoch=7, answered=(4, 6)), remember(moved_on(), before))
    assert waiting.leader_epoch.to_list() == [5, 5, 5]
    assert remember(moved_on(epoch=7, answered=(5,)), waiting).leader_epoch.to_list() == [7, 5, 5]


def test_a_topic_that_was_created_again_has_nothing_to_wait_for() -> None:
    again = partitions(topic_ids=(topic_id("orders", creation=1),))
    seen = remember(replace(moved_on(), partitions=again), remember(snapshot()))
    assert seen.leader_epoch.to_list() == [6, 5, 5]


def light(row: int, epoch: int, watermark: int, *, second: int) -> AtRiskObservations:
    return AtRiskObservations(
        partitions=partitions(),
        row=ints(row),
        leader_epoch=ints(epoch),
        last_stable_offset=Column.of([watermark - 5]),
        high_watermark=Column.of([watermark]),
        log_end_offset=Column.of([None]),
        observed_at_us=ints(microseconds(second)),
    )


def test_light_observations_refine_what_is_remembered_of_the_same_epoch() -> None:
    fresh = overlay_observations(remember(snapshot()), light(1, 5, 130, second=3))
    assert fresh.high_watermark.to_list() == [100, 130, 100]
    assert fresh.last_stable_offset.to_list() == [100, 125, 100]
    assert fresh.log_end_offset.to_list() == [100, None, 100]
    assert fresh.observed_at_us[1] == microseconds(3)


@pytest.mark.parametrize(
    "observation",
    [
        pytest.param(light(1, 6, 130, second=3), id="another-epoch"),
        pytest.param(light(1, 5, 130, second=-3), id="older"),
        pytest.param(
            replace(light(1, 5, 130, second=3), high_watermark=Column.of([None])), id="unseen"
        ),
        pytest.param(
            replace(
                light(1, 5, 130, second=3),
                partitions=partitions(topic_ids=(topic_id("orders", creation=1),)),
            ),
            id="another-topic",
        ),
    ],
)
def test_other_light_observations_refine_nothing(observation: AtRiskObservations) -> None:
    assert overlay_observations(remember(snapshot()), observation).high_watermark.to_list() == [
        100,
        100,
        100,
    ]
