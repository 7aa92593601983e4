"""Case tables of the rule that judges how often a group rebalances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rules.catalogue import consumer_group_rebalancing
from rules.facts.gap import GapScope
from rules.verdict import Verdict
from tests.factories import classic, described, gap, group, member
from tests.unit.rules.catalogue.judging import Case, judged

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
A, B = member("a", 0), member("b")
IN_BETWEEN = classic(
    member("a", assignment=None), member("b", assignment=None), state="PreparingRebalance"
)


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


def jobs(*sizes: int) -> Sequence[dict[str, Any]]:
    """Return rounds of a job that runs every three minutes with new members, so many at a time."""
    return tuple(
        {"groups": (classic(*(member(f"run-{run}-{n}", n) for n in range(size))),)}
        for run in range(5)
        for size in (*sizes, *[0] * (12 - len(sizes)))
    )


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
        id="a-job-of-one",
        because="its only member comes and goes, and nobody else is there to be disturbed",
        observations=tuple(jobs(1, 1)),
        verdict=OK,
        reason="no_members",
    ),
    Case(
        id="a-job-of-several",
        because="they end one after the other, until nobody is left",
        observations=(*jobs(3, 2, 1), *jobs(3)[:2]),
        verdict=OK,
        reason="no_members",
    ),
    Case(
        id="a-job-beside-others",
        because="a member is there all the time, and is disturbed",
        observations=tuple(
            {"groups": (classic(A, *entry["groups"][0].members),)} for entry in jobs(1, 1)[:50]
        ),
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
        observations=tuple({"groups": (IN_BETWEEN,)} for _ in range(2)),
        seconds=300,
        verdict=BREACH,
        reason="not_finished",
    ),
    Case(
        id="not-listed-in-between",
        because="a group that no round listed may have finished one and begun another",
        observations=(
            {"groups": (IN_BETWEEN,)},
            {"gaps": (gap(scope=GapScope.GROUPS),)},
            {"groups": (IN_BETWEEN,)},
        ),
        seconds=300,
        verdict=OK,
        reason="settled",
    ),
    Case(
        id="just-begun",
        because="a rebalance takes its time",
        observations=tuple({"groups": (IN_BETWEEN,)} for _ in range(2)),
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


@pytest.mark.parametrize("case", REBALANCING, ids=lambda case: case.id)
def test_rebalancing(case: Case) -> None:
    finding = judged(consumer_group_rebalancing.judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


def test_a_rebalance_says_who_came_and_went() -> None:
    [case] = (case for case in REBALANCING if case.id == "again-and-again")
    finding = judged(consumer_group_rebalancing.judge, case)
    rebalances: Any = finding.evidence["rebalances"]
    newest, before = rebalances[:2]
    common = {"count": 1, "stayed": 1, "moved_partitions": 0, "epoch": None}
    assert newest == {"ms_ago": 0, "joined": 0, "left": 1, "short_lived": 1, **common}
    assert before == {"ms_ago": 15_000, "joined": 1, "left": 0, "short_lived": 0, **common}
    assert rebalances[-1]["short_lived"] == 0  # it was a member when the group was first observed
    assert finding.evidence["repeated_in_15_minutes"] == 2
