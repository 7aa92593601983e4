"""Commits of one round are found again in another, wherever they stand there."""

from __future__ import annotations

from rules.facts.commit_keys import CommitKeys
from tests.factories import commits, group, ints, partitions, topic_id

PLACED = partitions({"audit": 2, "orders": 2})
KEYS = CommitKeys(
    partitions=PLACED, group_ids=("billing", "shipping"), group=ints(0, 0, 1), row=ints(0, 2, 3)
)


def test_the_same_round_finds_each_in_its_place() -> None:
    seen = commits((0, 0, 5), (0, 1, 5), (0, 2, 5), (1, 3, 5))
    groups = (group("billing"), group("shipping"))
    assert KEYS.find(PLACED, groups, seen).tolist() == [0, -1, 1, 2]


def test_groups_and_partitions_may_have_moved() -> None:
    later = partitions({"orders": 2, "audit": 2, "new": 1})
    groups = (group("another"), group("shipping"), group("billing"))
    seen = commits((0, 0, 5), (1, 1, 5), (2, 0, 5), (2, 2, 5), (2, 4, 5))
    assert KEYS.find(later, groups, seen).tolist() == [-1, 2, 1, 0, -1]


def test_a_topic_created_again_has_other_commits() -> None:
    again = (topic_id("audit", creation=1), topic_id("orders"))
    later = partitions({"audit": 2, "orders": 2}, topic_ids=again)
    seen = commits((0, 0, 5), (0, 2, 5))
    assert KEYS.find(later, (group("billing"),), seen).tolist() == [-1, 1]


def test_some_of_them_are_found_where_they_are_now() -> None:
    some = KEYS.take(ints(0, 2))
    assert len(some) == 2
    seen = commits((0, 0, 5), (0, 2, 5), (1, 3, 5))
    assert some.find(PLACED, (group("billing"), group("shipping")), seen).tolist() == [0, -1, 1]


def test_among_nothing_nothing_is_found() -> None:
    none = CommitKeys(partitions=PLACED, group_ids=(), group=ints(), row=ints())
    assert none.find(PLACED, (group(),), commits((0, 0, 5))).tolist() == [-1]
    assert KEYS.find(PLACED, (), commits()).tolist() == []
