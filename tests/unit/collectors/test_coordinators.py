"""Which broker's word counts of a group, where a broker that was frozen still lists it."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.groups import GroupReader
from collectors.session import Session
from collectors.state_topic import PlacementOf, StateTopic, newest
from collectors.translate import topic_id_of
from collectors.wire.api import DESCRIBE_GROUPS, LIST_GROUPS, METADATA, Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Group
from rules.facts.identity import CONSUMER_OFFSETS, BrokerId
from tests.factories import broker
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.test_groups import classic_groups, listing
from tests.unit.collectors.test_state_topic import ID, metadata

AWAKE, LEADER, OTHER = broker(1), broker(2), broker(3)
NOT_FOUND, NOT_COORDINATOR = 69, 16
LATE = Failure(GapCause.TIMEOUT, "late")
PARTITIONS = 4
BILLING = ("billing", "Stable", "classic")


def placed(leader: int, epoch: int) -> bytes:
    """Return a Metadata answer in which one broker leads all of the topic."""
    rows = ((number, leader, epoch) for number in range(PARTITIONS))
    return metadata(*rows, name=CONSUMER_OFFSETS)


STALE, NEWEST = placed(1, 5), placed(2, 6)


def observe(
    answers: dict[tuple[Any, Api], Prepared], topic: PlacementOf | None = None
) -> tuple[tuple[Group, ...], Session]:
    prepared: dict[tuple[Any, Api], Prepared] = {
        (one, LIST_GROUPS): listing() for one in (AWAKE, LEADER, OTHER)
    }
    session = session_of(AWAKE, LEADER, OTHER, answers=prepared | answers)
    return GroupReader(topic or PlacementOf(CONSUMER_OFFSETS)).collect(session, None), session


def told(session: Session) -> list[tuple[GapScope, int | None, str | None]]:
    return [(gap.scope, gap.broker_id, gap.group) for gap in session.gaps]


@pytest.mark.parametrize(
    "metadata_of_others", [{(OTHER, METADATA): NEWEST}, {(LEADER, METADATA): NEWEST}]
)
def test_of_two_that_list_a_group_the_leader_in_the_highest_epoch_counts(
    metadata_of_others: dict[tuple[Any, Api], Prepared],
) -> None:
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (LEADER, LIST_GROUPS): listing(BILLING),
            (AWAKE, METADATA): STALE,
            (AWAKE, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 9, 0)),
            (LEADER, DESCRIBE_GROUPS): classic_groups(("billing", "Empty", 0, 0)),
            **metadata_of_others,
        }
    )
    [group] = found
    assert (group.coordinator, group.state, group.member_count) == (2, "Empty", 0)
    assert told(session) == [(GapScope.MEMBERS, 1, None)]
    assert "answers of broker 1 about 1 group (billing)" in session.gaps[0].what


def test_a_group_that_only_another_broker_lists_is_asked_of_its_leader() -> None:
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (AWAKE, METADATA): STALE,
            (OTHER, METADATA): NEWEST,
            (LEADER, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 2, 0)),
        }
    )
    assert [(one.coordinator, one.member_count) for one in found] == [(2, 2)]
    assert told(session) == [(GapScope.MEMBERS, 1, None)]


@pytest.mark.parametrize(("state", "error"), [("Dead", 0), ("", NOT_FOUND)])
def test_a_group_that_its_leader_does_not_know_is_not_there_and_hides_its_commits_once(
    state: str, error: int
) -> None:
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (OTHER, METADATA): NEWEST,
            (LEADER, DESCRIBE_GROUPS): classic_groups(("billing", state, 0, error)),
        }
    )
    assert found == ()
    assert told(session) == [(GapScope.MEMBERS, 1, None), (GapScope.COMMITS, None, "billing")]


def test_a_leader_that_is_not_ready_is_a_gap_and_nobody_is_asked_instead() -> None:
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (OTHER, METADATA): NEWEST,
            (AWAKE, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 9, 0)),
            (LEADER, DESCRIBE_GROUPS): classic_groups(("billing", "", 0, NOT_COORDINATOR)),
        }
    )
    assert [(one.coordinator, one.state, one.member_count) for one in found] == [(2, None, None)]
    assert told(session) == [(GapScope.MEMBERS, 1, None), (GapScope.MEMBERS, None, "billing")]


@pytest.mark.parametrize("leader", [9, -1])
def test_without_a_leader_that_can_be_asked_nothing_is_known(leader: int) -> None:
    found, session = observe(
        {(AWAKE, LIST_GROUPS): listing(BILLING), (OTHER, METADATA): placed(leader, 6)}
    )
    known = None if leader < 0 else leader
    assert [(one.coordinator, one.member_count) for one in found] == [(known, None)]
    scopes = [GapScope.MEMBERS, GapScope.MEMBERS, GapScope.COMMITS]
    assert [gap.scope for gap in session.gaps] == scopes
    assert session.requests[DESCRIBE_GROUPS.name] == 0


def test_what_was_told_in_an_earlier_round_counts_where_only_the_other_one_answers() -> None:
    topic = PlacementOf(CONSUMER_OFFSETS)
    observe({(LEADER, METADATA): NEWEST}, topic)
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (AWAKE, METADATA): STALE,
            (LEADER, LIST_GROUPS): LATE,
            (LEADER, DESCRIBE_GROUPS): LATE,
        },
        topic,
    )
    assert [one.coordinator for one in found] == [2]
    assert (GapScope.MEMBERS, 1, None) in told(session)


def test_where_the_topic_may_not_be_seen_the_only_one_that_lists_a_group_counts() -> None:
    hidden = metadata(name=CONSUMER_OFFSETS, error=29)
    asked: dict[tuple[Any, Api], Prepared] = {
        (one, METADATA): hidden for one in (AWAKE, LEADER, OTHER)
    }
    asked[AWAKE, LIST_GROUPS] = listing(BILLING)
    asked[AWAKE, DESCRIBE_GROUPS] = classic_groups(("billing", "Stable", 1, 0))
    found, session = observe(asked)
    assert [(one.coordinator, one.member_count) for one in found] == [(1, 1)]
    assert session.gaps == []
    found, session = observe(asked | {(OTHER, LIST_GROUPS): listing(BILLING)})
    assert [(one.coordinator, one.state) for one in found] == [(None, None)]
    assert (GapScope.COMMITS, None, None) in told(session)


def test_a_normal_round_has_no_gap_and_decodes_each_answer_once() -> None:
    topic = PlacementOf(CONSUMER_OFFSETS)
    answers: dict[tuple[Any, Api], Prepared] = {
        (LEADER, LIST_GROUPS): listing(BILLING),
        (LEADER, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 1, 0)),
        **{(one, METADATA): NEWEST for one in (AWAKE, LEADER, OTHER)},
    }
    for _ in range(2):
        found, session = observe(answers, topic)
        assert [(one.coordinator, one.member_count) for one in found] == [(2, 1)]
        assert session.gaps == []
        assert session.requests[METADATA.name] == len(session.brokers)
    session = session_of(LEADER, answers={(LEADER, METADATA): NEWEST})
    assert topic.collect(session) == StateTopic(
        leaders=(BrokerId(2),) * PARTITIONS,
        leader_epochs=(6,) * PARTITIONS,
        topic_id=topic_id_of(ID),
    )


def state(*rows: tuple[int | None, int | None]) -> StateTopic:
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader, _ in rows),
        leader_epochs=tuple(epoch for _, epoch in rows),
    )


def test_of_each_partition_the_highest_epoch_counts_and_of_equals_the_leader_that_is_there() -> (
    None
):
    old, new = state((1, 5), (1, 7), (None, 3)), state((2, 6), (None, 7), (3, 3), (2, 0))
    expected = state((2, 6), (1, 7), (3, 3), (2, 0))
    assert newest([old, new]) == newest([new, old]) == expected
    assert newest([state((1, 5)), state((None, 6))]) == state((None, 6))


def test_what_every_broker_says_counts_though_it_is_older() -> None:
    topic = PlacementOf(CONSUMER_OFFSETS)
    observe({(LEADER, METADATA): NEWEST}, topic)
    restored = {(one, METADATA): STALE for one in (AWAKE, LEADER, OTHER)}
    found, session = observe(
        {
            (AWAKE, LIST_GROUPS): listing(BILLING),
            (AWAKE, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 1, 0)),
            **restored,
        },
        topic,
    )
    assert [(one.coordinator, one.member_count) for one in found] == [(1, 1)]
    assert session.gaps == []


def test_another_topic_of_the_same_name_has_epochs_of_its_own() -> None:
    topic = PlacementOf(CONSUMER_OFFSETS)
    observe({(LEADER, METADATA): NEWEST}, topic)
    topic._newest = StateTopic(leaders=(BrokerId(9),), leader_epochs=(99,))  # noqa: SLF001
    _, session = observe({(LEADER, METADATA): NEWEST}, topic)
    known = topic.collect(session)
    assert isinstance(known, StateTopic)
    assert known.leader_of("billing") == 2
