"""Case tables of the rules that judge the members of groups, and owners in other rules' findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rules.catalogue import (
    consumer_group_rebalancing,
    consumer_group_stalled,
    consumer_partitions_unowned,
    read_committed_consumers_blocked,
)
from rules.facts.groups import Group, GroupType
from rules.verdict import Severity, Verdict
from tests.factories import commits, described, group, member, offsets, partitions
from tests.unit.rules.catalogue.judging import Case, judged

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
A, B = member("a", 0), member("b")
BOTH = described(A, B)


def seen(of: Group, committed: int = 50, *, nothing: int | None = 0) -> dict[str, Any]:
    """Return an observation of one group that committed on one partition, whose ends are at 100."""
    return {"groups": (of,), "commits": commits((0, 0, committed), nothing_to_read=[nothing])}


def classic(*of: Any, **overrides: Any) -> Group:
    """Return the same as a classic group."""
    return described(*of, group_type=GroupType.CLASSIC, **overrides)


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


def epochs(*numbers: int) -> Sequence[dict[str, Any]]:
    """Return a round for each of these epochs of a group."""
    return tuple({"groups": (described(A, B, epoch=number),)} for number in numbers)


def deployment(members: int) -> Sequence[dict[str, Any]]:
    """Return rounds in which each member of a classic group leaves and a new one joins."""
    now = [member(f"old-{number}", number) for number in range(members)]
    rounds = [list(now)]
    for number in range(members):
        del now[0]
        rounds += [list(now), [*now, member(f"new-{number}", number)]]
        now = list(rounds[-1])
    return tuple({"groups": (classic(*own),)} for own in rounds)


def cooperative(rounds: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the same of a cooperative group: its assignment changes once more each time."""
    twice: list[dict[str, Any]] = []
    for entry in rounds:
        first, *others = entry["groups"][0].members
        between = replace(first, assignment=())
        twice += [{"groups": (classic(between, *others),)}, entry]
    return tuple(twice)


def backed_off(minutes: int) -> Sequence[dict[str, Any]]:
    """Return rounds in which a member came and went and then stayed, and so many minutes after that."""
    return *coming_and_going(6), *[{"groups": (classic(A, B),)}] * (4 * minutes)


def connect(*names: str) -> dict[str, Any]:
    """Return a round of a group whose protocol does not assign partitions."""
    workers = (member(name, assignment=None) for name in names)
    return {"groups": (classic(*workers, protocol_type="connect"),)}


def coming_and_going(times: int) -> Sequence[dict[str, Any]]:
    """Return rounds in which a classic group loses a member and gets it back."""
    pair = ({"groups": (classic(A, B),)}, {"groups": (classic(member("a", 0)),)})
    return tuple(pair[number % 2] for number in range(times + 1))


REBALANCING = [
    Case(
        id="settled",
        because="nothing changed",
        observations=tuple(epochs(4, 4, 4)),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="a-deployment",
        because="two members restart: each leaves and joins once",
        observations=tuple(coming_and_going(4)),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="a-large-deployment",
        because="each of ten members leaves once, and a new one joins",
        observations=tuple(deployment(10)),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="a-cooperative-deployment",
        because="such a group rebalances twice when a member leaves or joins",
        observations=tuple(cooperative(deployment(6))),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="over",
        because="nothing has changed for half of the time",
        observations=tuple(backed_off(8)),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="not-over",
        because="a process that is restarted with backoff may be about to come back",
        observations=tuple(backed_off(7)),
        verdict=BREACH,
        reason="repeated",
    ),
    Case(
        id="static-member",
        because="it restarts within its session timeout with another member id, and nobody rebalances",
        observations=tuple(
            {"groups": (classic(member(f"pod-0-{number}", 0, instance_id="pod-0"), B),)}
            for number in range(7)
        ),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="workers-of-connect",
        because="their assignments are not known, but who joins and leaves is",
        observations=tuple(connect(*("a", "b")[: 1 + number % 2]) for number in range(6)),
        verdict=BREACH,
        reason="repeated",
    ),
    Case(
        id="again-and-again",
        because="the fifth change within 15 minutes",
        observations=tuple(coming_and_going(5)),
        verdict=BREACH,
        reason="repeated",
    ),
    Case(
        id="hours-apart",
        because="five changes, one every ten minutes",
        observations=tuple(coming_and_going(5)),
        seconds=600,
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="epochs-count",
        because="the group epoch grew by five between two rounds, and a partition went to the other member",
        observations=(
            *epochs(4),
            {"groups": (described(member("a"), member("b", 0), epoch=9),)},
        ),
        verdict=BREACH,
        reason="repeated",
    ),
    Case(
        id="brokers-restart",
        because="the racks of partitions change: an epoch begins each time, and everything is as before",
        observations=tuple(epochs(4, 7, 9, 12)),
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="not-finished",
        because="five minutes are what members may take",
        observations=tuple({"groups": (REBALANCING_CLASSIC,)} for _ in range(2)),
        seconds=300,
        verdict=BREACH,
        reason="not_finished",
    ),
    Case(
        id="just-begun",
        because="a rebalance takes its time",
        observations=tuple({"groups": (REBALANCING_CLASSIC,)} for _ in range(2)),
        seconds=290,
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="not-described",
        because="what happened before says nothing of now",
        observations=(*coming_and_going(5), {"groups": (group(member_count=None),)}),
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="empty",
        because="nobody is there to rebalance",
        observations=({"groups": (described(),)},),
        verdict=OK,
        reason="no_members",
    ),
]


@pytest.mark.parametrize("case", UNOWNED, ids=lambda case: case.id)
def test_unowned(case: Case) -> None:
    finding = judged(consumer_partitions_unowned.judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


@pytest.mark.parametrize("case", REBALANCING, ids=lambda case: case.id)
def test_rebalancing(case: Case) -> None:
    finding = judged(consumer_group_rebalancing.judge, case)
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


def test_a_rebalance_says_who_came_and_went() -> None:
    [case] = (case for case in REBALANCING if case.id == "again-and-again")
    finding = judged(consumer_group_rebalancing.judge, case)
    rebalances: Any = finding.evidence["rebalances"]
    newest, before = rebalances[:2]
    common = {"count": 1, "moved_partitions": 0, "epoch": None}
    assert newest == {"ms_ago": 0, "joined": 0, "left": 1, "short_lived": 1, **common}
    assert before == {"ms_ago": 15_000, "joined": 1, "left": 0, "short_lived": 0, **common}
    assert rebalances[-1]["short_lived"] == 0  # it was a member when the group was first observed
    assert finding.evidence["repeated_in_15_minutes"] == 2


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
