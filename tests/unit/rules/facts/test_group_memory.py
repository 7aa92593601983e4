"""What is remembered of groups, over rounds that could not list them and over restarts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rules.facts.gap import GapScope
from rules.facts.group_memory import GroupMemory, have_members, merge_groups
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance, merge_stored, shift_times
from rules.facts.unowned_partitions import MOST_UNOWNED
from tests.factories import NOON, at, commits, described, gap, group, member, snapshot


def after(*observations: dict[str, Any], seconds: int = 15) -> Memory:
    memory: Memory | None = None
    for number, observation in enumerate(observations):
        memory = advance(snapshot(taken_at=at(number * seconds), **observation), memory)
    assert memory is not None
    return memory


def active(memory: Memory | GroupMemory) -> dict[str, datetime | None]:
    groups = memory.groups if isinstance(memory, Memory) else memory
    times = groups.active_us.to_list()
    return {
        name: None if time is None else NOON + timedelta(microseconds=time - microseconds(NOON))
        for name, time in zip(groups.group_ids, times, strict=True)
    }


def observe(members: int | None = 1, committed: int = 50, **more: Any) -> dict[str, Any]:
    return {
        "groups": (group(member_count=members),),
        "commits": commits((0, 0, committed)),
        **more,
    }


@pytest.mark.parametrize(
    ("observations", "expected"),
    [
        pytest.param((observe(0), observe(0)), None, id="never"),
        pytest.param((observe(1), observe(0), observe(0)), at(0), id="had-members"),
        pytest.param((observe(0), observe(0, 60), observe(0, 60)), at(15), id="went-forward"),
        pytest.param((observe(0), observe(0, 40), observe(0, 40)), None, id="went-back"),
        pytest.param((observe(1), {}, observe(0)), None, id="deleted-and-made-anew"),
        pytest.param(
            (observe(1), {"gaps": (gap(scope=GapScope.GROUPS),)}, observe(0)),
            at(0),
            id="not-listed",
        ),
    ],
)
def test_when_a_group_was_at_work(
    observations: tuple[dict[str, Any], ...], expected: datetime | None
) -> None:
    assert active(after(*observations)) == {"billing": expected}


def test_a_group_that_could_not_be_listed_for_a_day_is_forgotten() -> None:
    hidden = {"gaps": (gap(scope=GapScope.GROUPS),)}
    assert active(after(observe(1), hidden, seconds=86_399)) == {"billing": at(0)}
    assert active(after(observe(1), hidden, seconds=86_400)) == {}


def test_without_a_description_the_state_of_the_listing_counts() -> None:
    members = [
        group(member_count=None, state=state)
        for state in ("Empty", "Dead", "Stable", "PreparingRebalance", None)
    ]
    assert have_members(members).to_list() == [0, 0, 1, 1, None]
    assert have_members([group(member_count=0, state="Stable")]).to_list() == [0]


def test_what_an_earlier_process_saw_is_laid_under() -> None:
    stored = after(observe(1, groups=(group("billing"), group("audit", epoch=4))))
    seen = after(observe(0), observe(0))
    merged = merge_stored(stored, seen)
    assert active(merged) == {"billing": at(0), "audit": at(0)}
    assert merged.groups.epoch.to_list() == [None, 4]
    assert active(merge_groups(GroupMemory.none(), seen.groups)) == {"billing": None}


def test_of_more_unowned_partitions_than_are_kept_the_newest_are() -> None:
    rest, many = member("rest", MOST_UNOWNED), member("many", *range(MOST_UNOWNED))
    last = member("last", MOST_UNOWNED + 1)
    rounds = (described(rest, many, last), described(rest, last), described(rest))
    history = after(*({"groups": (seen,)} for seen in rounds)).members.history_of("billing")
    newest, *others = history.unowned
    assert (newest.last_owner.member_id, newest.partitions) == ("last", (MOST_UNOWNED + 1,))
    assert sum(len(entry.partitions) for entry in others) == MOST_UNOWNED - 1


def test_a_clock_that_was_set_moves_what_is_remembered() -> None:
    moved = shift_times(after(observe(1)), 60_000_000)
    assert active(moved) == {"billing": at(60)}
    back = advance(snapshot(taken_at=at(-30), **observe(0)), after(observe(1)))
    assert active(back) == {"billing": at(-30)}
