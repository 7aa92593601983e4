"""What is remembered keeps its durations when the clock is set, and outlives what was not seen."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.column import Column
from rules.facts.gap import GapScope
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance, merge_stored, shift_times
from rules.facts.snapshot import Snapshot
from tests.factories import (
    at,
    commits,
    gap,
    group,
    offsets,
    partitions,
    snapshot,
    topic_id,
    unseen_offsets,
)

HOUR = 3600
DAY = 24 * HOUR


def held(seconds: float, **overrides: Any) -> Snapshot:
    """Return an observation of three partitions: one stuck, one held open, one at rest; a group waits."""
    base: dict[str, Any] = {
        "taken_at": at(seconds),
        "offsets": offsets(
            3,
            last_stable_offset=[100, 90, 100],
            log_end_offset=[120, 100, 100],
        ),
        "groups": (group(),),
        "commits": commits((0, 0, 50), (0, 2, 100)),
    }
    return snapshot(**base | overrides)


def times(memory: Memory) -> list[list[int | None]]:
    """Return all times of a memory, in seconds after noon."""
    columns = (
        memory.observations.observed_at_us,
        memory.high_watermark.since_us,
        memory.last_stable_offset.since_us,
        memory.commits.unchanged.since_us,
        Column.known(memory.commits.seen_us),
    )
    noon = microseconds(at(0))
    return [
        [
            None if timestamp is None else (timestamp - noon) // 10**6
            for timestamp in column.to_list()
        ]
        for column in columns
    ]


def test_a_shift_moves_every_time_and_nothing_else() -> None:
    memory = advance(held(10))
    assert times(memory) == [[10, 10, 10], [10, None, None], [None, 10, None], [10, None], [10, 10]]
    moved = shift_times(memory, -HOUR * 10**6)
    early = 10 - HOUR
    assert times(moved) == [
        [early] * 3,
        [early, None, None],
        [None, early, None],
        [early, None],
        [early, early],
    ]
    assert moved.high_watermark.values is memory.high_watermark.values
    assert times(shift_times(moved, HOUR * 10**6)) == times(memory)


def test_times_of_the_future_are_pulled_back_to_now() -> None:
    ahead = advance(held(HOUR))
    now = advance(held(0), ahead)
    assert times(now) == [[0, 0, 0], [0, None, None], [None, 0, None], [0, None], [0, 0]]


def test_times_of_the_past_stay() -> None:
    now = advance(held(60), advance(held(0)))
    assert times(now) == [[60] * 3, [0, None, None], [None, 0, None], [0, None], [60, 60]]


def test_a_round_that_saw_nothing_keeps_no_time_of_the_future() -> None:
    blind = snapshot(taken_at=at(0), gaps=(), placement_complete=False)
    none = snapshot(partitions=blind.partitions, offsets=offsets(3), taken_at=at(HOUR))
    memory = advance(blind, advance(none))
    assert times(memory)[0] == [0, 0, 0]


BOTH = partitions({"orders": 1, "audit": 2})


def both(seconds: float = 0, **overrides: Any) -> Snapshot:
    """Return an observation of two topics: `audit-1` is stuck and held open, a group waits there."""
    base: dict[str, Any] = {
        "taken_at": at(seconds),
        "partitions": BOTH,
        "offsets": offsets(3, last_stable_offset=[100, 100, 90], log_end_offset=[100, 100, 120]),
        "groups": (group(),),
        "commits": commits((0, 0, 100), (0, 2, 50)),
    }
    return snapshot(**base | overrides)


def without_audit(seconds: float, **overrides: Any) -> Snapshot:
    """Return an observation whose list of topics has lost one of them on the way."""
    base: dict[str, Any] = {
        "taken_at": at(seconds),
        "partitions": partitions({"orders": 1}),
        "placement_complete": False,
        "groups": (group(),),
        "commits": commits((0, 0, 100)),
    }
    return snapshot(**base | overrides)


def test_a_topic_that_was_left_out_is_remembered_as_it_was() -> None:
    before = advance(both())
    now = advance(without_audit(15), before)
    assert now.partitions.index.topics == ("orders", "audit")
    assert now.partitions.topic_ids == BOTH.topic_ids
    assert times(now) == [[15, 0, 0], [None, None, 0], [None, None, 0], [None, 0], [15, 0]]
    assert now.observations[2] == before.observations[2]
    assert now.commits.unchanged.values.to_list() == [100, 50]
    assert now.commits.row.tolist() == [0, 2]


def test_a_complete_list_forgets_what_it_does_not_show() -> None:
    left_out = advance(without_audit(15), advance(both()))
    now = advance(without_audit(30, placement_complete=True), left_out)
    assert now.partitions.index.topics == ("orders",)
    assert len(now.commits) == 1


def test_without_any_list_everything_is_kept() -> None:
    nothing = {"partitions": partitions({}), "groups": (), "commits": commits()}
    now = advance(without_audit(15, **nothing), advance(both()))
    assert now.partitions.index.topics == ("orders", "audit")
    assert times(now) == times(advance(both()))


@pytest.mark.parametrize(("seconds", "topics"), [(7 * DAY - 1, 2), (7 * DAY, 1)])
def test_a_topic_that_no_list_shows_is_forgotten_in_the_end(seconds: float, topics: int) -> None:
    now = advance(without_audit(seconds), advance(both()))
    assert len(now.partitions.index.topics) == topics


def test_without_topic_ids_a_topic_may_be_left_out_twice() -> None:
    """No observation is kept of it then, and yet its commits and what is are signs of life."""
    unnamed = partitions({"orders": 1, "audit": 2}, topic_ids=(None, None))
    orders = partitions({"orders": 1}, topic_ids=(None,))
    memory = advance(both(partitions=unnamed))
    for seconds in (15, 30, 45):
        memory = advance(without_audit(seconds, partitions=orders), memory)
        assert times(memory)[1] == [None, None, 0]
        assert memory.commits.unchanged.values.to_list() == [100, 50]
    at_rest = advance(both(partitions=unnamed, offsets=offsets(3)))
    for seconds in (15, 30, 45):
        at_rest = advance(without_audit(seconds, partitions=orders), at_rest)
        assert at_rest.commits.unchanged.values.to_list() == [100, 50]


def test_a_topic_made_again_takes_the_place_of_the_one_that_was_left_out() -> None:
    again = partitions({"audit": 2}, topic_ids=(topic_id("audit", creation=1),))
    now = advance(without_audit(15, partitions=again, commits=commits()), advance(both()))
    assert now.partitions.index.topics == ("audit", "orders")
    assert times(now)[1] == [None, None, None]
    assert now.commits.row.tolist() == [2]


def test_a_stored_memory_keeps_the_topics_that_were_left_out_since() -> None:
    joined = merge_stored(advance(both()), advance(without_audit(600)))
    assert times(joined)[:2] == [[600, 0, 0], [None, None, 0]]
    assert joined.commits.unchanged.values.to_list() == [100, 50]
    listed = advance(without_audit(615, placement_complete=True), joined)
    assert listed.partitions.index.topics == ("orders",)


@pytest.mark.parametrize(
    "hidden", ["log_end_offset", "high_watermark", "last_stable_offset"], ids=str
)
def test_what_is_hidden_for_a_round_ends_nothing(hidden: str) -> None:
    ends = {"last_stable_offset": [100, 90, 100], "log_end_offset": [120, 100, 100]}
    half = held(15, offsets=offsets(3, **ends | {hidden: [None] * 3}))
    now = advance(half, advance(held(0)))
    assert times(now)[1:4] == times(advance(held(0)))[1:4]


def test_a_value_that_moved_half_seen_unchanged_since_the_next_whole_observation() -> None:
    def observe(seconds: float, watermark: int, end: int | None) -> Snapshot:
        ends = offsets(3, high_watermark=[watermark] * 3, log_end_offset=[end] * 3)
        return held(seconds, offsets=ends)

    memory = advance(observe(15, 110, None), advance(observe(0, 100, 120)))
    assert times(memory)[1] == [None] * 3
    assert times(advance(observe(30, 110, 120), memory))[1] == [30] * 3


def waiting(seconds: float, *names: str, **overrides: Any) -> Snapshot:
    """Return an observation of groups that have all committed on the same partition."""
    entries = [(place, 0, 50) for place in range(len(names))]
    groups = tuple(group(name) for name in names)
    base = {"taken_at": at(seconds), "groups": groups, "commits": commits(*entries)}
    return snapshot(**base | overrides)


def kept(memory: Memory) -> list[str]:
    return [memory.commits.group_ids[position] for position in memory.commits.group.tolist()]


BEFORE = advance(waiting(0, "audit", "billing"))


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param({}, ["billing"], id="complete"),
        *(
            pytest.param({"gaps": (gap(scope=scope),)}, ["billing"], id=f"gap-of-{scope}")
            for scope in GapScope
            if scope not in {GapScope.GROUPS, GapScope.COMMITS}
        ),
        pytest.param({"gaps": (gap(scope=GapScope.GROUPS),)}, ["billing", "audit"], id="groups"),
        pytest.param({"gaps": (gap(scope=GapScope.COMMITS),)}, ["billing", "audit"], id="commits"),
        pytest.param(
            {"gaps": (gap(scope=GapScope.COMMITS, group="audit"),)},
            ["billing", "audit"],
            id="its-own-commits",
        ),
        pytest.param(
            {"gaps": (gap(scope=GapScope.COMMITS, group="other"),)},
            ["billing"],
            id="another-groups-commits",
        ),
        pytest.param({"placement_complete": False}, ["billing", "audit"], id="placement"),
    ],
)
def test_only_what_could_hide_a_commit_keeps_it(
    overrides: dict[str, Any], expected: list[str]
) -> None:
    assert kept(advance(waiting(15, "billing", **overrides), BEFORE)) == expected


@pytest.mark.parametrize(("seconds", "count"), [(DAY - 1, 2), (DAY, 1)])
def test_a_commit_is_forgotten_a_day_after_it_was_last_seen(seconds: float, count: int) -> None:
    hiding = {"gaps": (gap(scope=GapScope.GROUPS),)}
    memory = advance(waiting(15, "billing", **hiding), BEFORE)
    memory = advance(waiting(seconds, "billing", **hiding), memory)
    assert len(memory.commits) == len(memory.commits.group_ids) == count


def test_names_of_groups_without_a_remembered_commit_are_not_kept() -> None:
    memory: Memory | None = None
    for number in range(5):
        seen = waiting(number * DAY, f"console-{number}", gaps=(gap(scope=GapScope.GROUPS),))
        memory = advance(seen, memory)
    assert memory is not None
    assert memory.commits.group_ids == ("console-4",)


def test_a_lag_that_is_not_seen_lets_a_commit_neither_stand_nor_rest() -> None:
    blind = {"offsets": unseen_offsets(3)}
    assert times(advance(waiting(0, "billing", **blind)))[3] == [None]
    stood = advance(waiting(15, "billing", **blind), advance(waiting(0, "billing")))
    assert times(stood)[3] == [0]
