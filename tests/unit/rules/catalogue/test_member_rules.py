"""Case tables of the rules that judge the members of groups, and owners in other rules' findings."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import (
    consumer_group_stalled,
    consumer_partitions_unowned,
    read_committed_consumers_blocked,
)
from rules.facts.gap import GapScope
from rules.facts.groups import Group, GroupType
from rules.verdict import Severity, Verdict
from tests.factories import classic, commits, described, gap, group, member, offsets, partitions
from tests.unit.rules.catalogue.judging import Case, judged

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
A, B = member("a", 0), member("b")
BOTH = described(A, B)


def seen(of: Group, committed: int = 50, *, nothing: int | None = 0) -> dict[str, Any]:
    """Return an observation of one group that committed on one partition, whose ends are at 100."""
    return {"groups": (of,), "commits": commits((0, 0, committed), nothing_to_read=[nothing])}


def half_a_minute(of: Group) -> tuple[dict[str, Any], ...]:
    """Return the rounds that see a group as it is until what has no owner counts."""
    return (seen(of),) * 3


REBALANCING_CLASSIC = classic(
    member("a", assignment=None), member("b", assignment=None), state="PreparingRebalance"
)

UNOWNED = [
    Case(
        id="member-left",
        because="its partition has a backlog, and the member that is left does not own it",
        observations=(seen(BOTH), *half_a_minute(described(B))),
        verdict=BREACH,
        reason="member_left",
    ),
    Case(
        id="no-longer-subscribed",
        because="the member is there and gave the partition up to nobody",
        observations=(seen(BOTH), *half_a_minute(described(member("a"), B))),
        verdict=BREACH,
        reason="not_reassigned",
    ),
    Case(
        id="cooperative-rebalance",
        because="a classic group is stable while a member has given it up and nobody has got it yet",
        observations=(
            seen(classic(A, B)),
            seen(classic(member("a"), B)),
            seen(classic(member("a"), B)),
        ),
        verdict=UNKNOWN,
        reason="being_reassigned",
    ),
    Case(
        id="static-member-restarted",
        because="it has another member id, and is the same member",
        observations=(
            seen(classic(member("a", 0, instance_id="pod-0"), B)),
            *half_a_minute(classic(member("b"), member("c", instance_id="pod-0"))),
        ),
        verdict=BREACH,
        reason="not_reassigned",
    ),
    Case(
        id="taken-over",
        because="another member owns it now",
        observations=(seen(BOTH), seen(described(member("b", 0)))),
        verdict=OK,
        reason="owned",
    ),
    Case(
        id="everybody-was-away",
        because="the group was empty in between, and only one of two members came back",
        observations=(seen(BOTH), seen(described()), *half_a_minute(described(B))),
        verdict=BREACH,
        reason="member_left",
    ),
    Case(
        id="left-while-not-listed",
        because="nobody forgets the members of a group whose coordinator cannot be reached",
        observations=(
            seen(BOTH),
            {"gaps": (gap(scope=GapScope.GROUPS),)},
            *half_a_minute(described(B)),
        ),
        verdict=BREACH,
        reason="member_left",
    ),
    Case(
        id="never-owned",
        because="the group may have stopped reading the topic on purpose",
        observations=(seen(described(B)), seen(described(B))),
        verdict=BREACH,
        reason="never_owned",
    ),
    Case(
        id="nothing-to-read",
        because="nobody has to read an end that nothing is behind",
        observations=(seen(BOTH), seen(described(B), 100)),
        verdict=OK,
        reason="nothing_to_read",
    ),
    Case(
        id="only-a-marker",
        because="a transaction marker is nothing to read",
        observations=(seen(BOTH), seen(described(B), 99, nothing=1)),
        verdict=OK,
        reason="nothing_to_read",
    ),
    Case(
        id="maybe-only-a-marker",
        because="one offset may be a marker, and the log was not read",
        observations=(seen(BOTH), seen(described(B), 99, nothing=None)),
        verdict=UNKNOWN,
        reason="not_determined",
    ),
    Case(
        id="rebalancing",
        because="a classic group reports no assignments while it rebalances",
        observations=(seen(classic(A, B)), seen(REBALANCING_CLASSIC)),
        verdict=UNKNOWN,
        reason="owners_not_known",
    ),
    Case(
        id="reconciling",
        because="the former owner may have yet to give the partition up",
        observations=(seen(BOTH), seen(described(B, state="Reconciling"))),
        verdict=UNKNOWN,
        reason="owners_not_known",
    ),
    Case(
        id="not-described",
        because="nobody may say that nobody owns it without the permission to see",
        observations=(seen(BOTH), seen(group(member_count=None))),
        verdict=UNKNOWN,
        reason="owners_not_known",
    ),
    Case(
        id="unreadable-assignment",
        because="a member whose assignment cannot be read may own it",
        observations=(seen(BOTH), seen(described(B, member("c", assignment=None)))),
        verdict=UNKNOWN,
        reason="owners_not_known",
    ),
    Case(
        id="two-owners",
        because="of two members that claim it neither is known to own it",
        observations=(seen(BOTH), seen(described(A, member("c", 0)))),
        verdict=UNKNOWN,
        reason="owners_not_known",
    ),
    Case(
        id="empty",
        because="a group without members is another rule's",
        observations=(seen(BOTH), seen(described())),
        verdict=OK,
        reason="no_members",
    ),
    Case(
        id="end-not-seen",
        because="how much there is to read is not known",
        observations=(
            seen(BOTH),
            {**seen(described(B)), "offsets": offsets(1, last_stable_offset=[None])},
        ),
        verdict=UNKNOWN,
        reason="end_not_seen",
    ),
]


@pytest.mark.parametrize("case", UNOWNED, ids=lambda case: case.id)
def test_unowned(case: Case) -> None:
    finding = judged(consumer_partitions_unowned.judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


def test_an_unowned_partition_names_its_last_owner() -> None:
    finding = judged(consumer_partitions_unowned.judge, UNOWNED[0])
    assert finding.severity is Severity.WARNING
    assert finding.evidence["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "committed_offset": 50,
            "lag": 50,
            "owner": "nobody",
            "last_member_id": "a",
            "last_client_id": "client-of-a",
            "last_host": "10.0.0.7",
        }
    ]


def test_what_was_never_owned_is_information() -> None:
    [case] = (case for case in UNOWNED if case.id == "never-owned")
    assert judged(consumer_partitions_unowned.judge, case).severity is Severity.INFO


@pytest.mark.parametrize(
    ("of", "owner"),
    [
        (
            BOTH,
            {"owner": "member", "member_id": "a", "client_id": "client-of-a", "host": "10.0.0.7"},
        ),
        (described(B), {"owner": "nobody"}),
        (group(), {"owner": "unknown"}),
        (described(B, group_type=GroupType.CONSUMER, state="Reconciling"), {"owner": "unknown"}),
    ],
    ids=["member", "nobody", "not-described", "reconciling"],
)
def test_the_findings_of_groups_name_the_owner(of: Group, owner: dict[str, str]) -> None:
    stalled = Case(
        id="", because="", observations=(seen(of), seen(of)), seconds=60, verdict=BREACH, reason=""
    )
    rows: Any = judged(consumer_group_stalled.judge, stalled).evidence["partitions"]
    [row] = rows
    assert {
        name: row[name] for name in ("owner", "member_id", "client_id", "host") if name in row
    } == owner
    blocked = Case(
        id="",
        because="",
        observations=({**seen(of, 100), "partitions": partitions({"orders": 1})},),
        verdict=OK,
        reason="",
    )
    evidence = judged(read_committed_consumers_blocked.judge, blocked).evidence
    assert owner.items() <= evidence.items()
