"""Groups: what a listing tells, and what describing them adds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors.groups import GroupReader
from collectors.session import Session
from collectors.wire.api import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, LIST_GROUPS, Api
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Group, GroupType
from tests.factories import broker, group
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

FIRST, SECOND = broker(1), broker(2)


def listing(*entries: tuple[str, str, str], error: int = 0) -> bytes:
    """Return a ListGroups answer from (group, state, type)."""
    listed = part(LIST_GROUPS, 5, "ListedGroup")
    told = tuple(
        listed(group_id=name, protocol_type="consumer", group_state=state, group_type=kind)
        for name, state, kind in entries
    )
    return answer(
        LIST_GROUPS, 5, throttle_time=NO_THROTTLE, error_code=ErrorCode(error), groups=told
    )


def classic_groups(*entries: tuple[str, str, int, int]) -> bytes:
    """Return a DescribeGroups answer from (group, state, members, error)."""
    member = part(DESCRIBE_GROUPS, 5, "DescribedGroupMember")
    described = part(DESCRIBE_GROUPS, 5, "DescribedGroup")
    one = member(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        member_metadata=b"",
        member_assignment=b"",
    )
    told = tuple(
        described(
            error_code=ErrorCode(error),
            group_id=name,
            group_state=state,
            protocol_type="consumer",
            protocol_data="",
            members=(one,) * members,
        )
        for name, state, members, error in entries
    )
    return answer(DESCRIBE_GROUPS, 5, throttle_time=NO_THROTTLE, groups=told)


def collect(
    answers: dict[tuple[Any, Api], Prepared], wanted: str | None = None
) -> tuple[tuple[Group, ...], Session]:
    session = session_of(FIRST, SECOND, answers={(FIRST, LIST_GROUPS): listing()} | answers)
    pattern = re.compile(wanted) if wanted is not None else None
    return GroupReader().collect(session, pattern), session


def test_a_described_group_has_members_and_its_newest_state() -> None:
    found, session = collect(
        {
            (FIRST, LIST_GROUPS): listing(("billing", "PreparingRebalance", "classic")),
            (SECOND, LIST_GROUPS): listing(),
            (FIRST, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", 3, 0)),
        }
    )
    billing = group("billing", group_type=GroupType.CLASSIC, member_count=3)
    assert found == (replace(billing, protocol_type="consumer", members=found[0].members),)
    assert [(one.client_id, one.host) for one in found[0].members or ()] == [("c", "127.0.0.1")] * 3
    assert session.gaps == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("Classic", GroupType.CLASSIC),
        ("Consumer", GroupType.CONSUMER),
        ("share", GroupType.SHARE),
        ("Streams", GroupType.STREAMS),
        ("Quantum", GroupType.UNKNOWN),
        ("", GroupType.UNKNOWN),
    ],
)
def test_a_type_is_read_whatever_its_case_and_a_new_one_is_unknown(
    told: str, expected: GroupType
) -> None:
    found, _ = collect(
        {
            (FIRST, LIST_GROUPS): listing(("g", "Stable", told)),
            (SECOND, LIST_GROUPS): listing(),
        }
    )
    assert [one.group_type for one in found] == [expected]


def test_groups_of_all_coordinators_are_ordered_by_name() -> None:
    found, _ = collect(
        {
            (FIRST, LIST_GROUPS): listing(("b", "Stable", "x"), ("d", "Stable", "x")),
            (SECOND, LIST_GROUPS): listing(("c", "Stable", "x"), ("a", "Stable", "x")),
        }
    )
    assert [(one.group_id, one.coordinator) for one in found] == [
        ("a", 2),
        ("b", 1),
        ("c", 2),
        ("d", 1),
    ]


def test_a_filter_has_to_match_the_whole_name() -> None:
    found, _ = collect(
        {
            (FIRST, LIST_GROUPS): listing(("billing", "Stable", "x"), ("billing-2", "Stable", "x")),
            (SECOND, LIST_GROUPS): listing(),
        },
        wanted="billing",
    )
    assert [one.group_id for one in found] == ["billing"]


def test_a_silent_coordinator_is_a_gap_and_the_others_groups_stay() -> None:
    found, session = collect(
        {
            (FIRST, LIST_GROUPS): listing(("billing", "Empty", "classic")),
            (FIRST, DESCRIBE_GROUPS): classic_groups(("billing", "Empty", 0, 0)),
        }
    )
    assert [one.group_id for one in found] == ["billing"]
    (gap,) = session.gaps
    assert (gap.what, gap.cause) == ("groups coordinated by broker 2", GapCause.TIMEOUT)
    assert gap.scope is GapScope.GROUPS


def test_a_listing_with_an_error_is_a_gap() -> None:
    found, session = collect(
        {(FIRST, LIST_GROUPS): listing(error=15), (SECOND, LIST_GROUPS): listing()}
    )
    assert found == ()
    assert [gap.cause for gap in session.gaps] == [GapCause.COORDINATOR_MOVING]


def test_a_group_that_cannot_be_described_keeps_what_its_listing_told() -> None:
    found, session = collect(
        {
            (FIRST, LIST_GROUPS): listing(("billing", "Stable", "classic")),
            (SECOND, LIST_GROUPS): listing(),
            (FIRST, DESCRIBE_GROUPS): classic_groups(("billing", "Dead", 0, 30)),
        }
    )
    assert (found[0].state, found[0].member_count) == ("Stable", None)
    (gap,) = session.gaps
    assert (gap.what, gap.group) == ("members of group billing", "billing")
    assert gap.scope is GapScope.MEMBERS
    assert "needs DESCRIBE on Group billing" in gap.why


def test_a_description_that_never_came_is_one_gap_for_all_its_groups() -> None:
    found, session = collect(
        {
            (FIRST, LIST_GROUPS): listing(("a", "Stable", "consumer"), ("b", "Stable", "consumer")),
            (SECOND, LIST_GROUPS): listing(),
        }
    )
    assert [one.member_count for one in found] == [None, None]
    (gap,) = session.gaps
    assert (gap.what, gap.scope) == ("members of 2 groups (a, b)", GapScope.MEMBERS)
    assert session.requests[CONSUMER_GROUP_DESCRIBE.name] == 1


def test_later_rounds_read_what_the_brokers_answer_otherwise_and_nothing_else() -> None:
    reader = GroupReader()

    def round_of(state: str, members: int, *, is_silent: bool = False) -> tuple[Group, ...]:
        answers: dict[tuple[Any, Api], Prepared] = {
            (FIRST, LIST_GROUPS): listing(("billing", "Stable", "classic")),
            (FIRST, DESCRIBE_GROUPS): classic_groups(("billing", state, members, 0)),
        }
        if not is_silent:
            answers[SECOND, LIST_GROUPS] = listing(("shipping", "Stable", "quantum"))
        session = session_of(FIRST, SECOND, answers=answers)
        groups = reader.collect(session, None)
        assert [gap.scope for gap in session.gaps] == [
            GapScope.GROUPS if is_silent else GapScope.MEMBERS
        ]
        return groups

    assert [one.member_count for one in round_of("Stable", 3)] == [3, None]
    assert [one.member_count for one in round_of("Stable", 3)] == [3, None]
    assert [one.state for one in round_of("PreparingRebalance", 4)] == [
        "PreparingRebalance",
        "Stable",
    ]
    assert [one.group_id for one in round_of("Stable", 3, is_silent=True)] == ["billing"]
    assert [one.member_count for one in round_of("Stable", 5)] == [5, None]


def test_answers_as_in_the_last_round_give_the_same_groups() -> None:
    reader = GroupReader()
    rounds = []
    for members in (3, 3, 4):
        answers: dict[tuple[Any, Api], Prepared] = {
            (FIRST, LIST_GROUPS): listing(("billing", "Stable", "classic")),
            (FIRST, DESCRIBE_GROUPS): classic_groups(("billing", "Stable", members, 0)),
        }
        rounds.append(reader.collect(session_of(FIRST, answers=answers), None))
    assert rounds[0] is rounds[1]
    assert [one.member_count for one in rounds[2]] == [4]
