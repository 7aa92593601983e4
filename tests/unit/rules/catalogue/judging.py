"""A round to judge: a small cluster, changed where a case needs it, some seconds later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rules.facts.snapshot import Snapshot
from rules.judgement import Finding, Judgement
from rules.remembering import view_of_round
from rules.verdict import Verdict
from rules.view import View
from tests.factories import NOON, partitions, snapshot

Judge = Callable[[View], Judgement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a rule's specification: why it is so, what was seen, what has to be said."""

    id: str
    because: str
    observations: tuple[dict[str, Any], ...] = field(
        default=({},)
    )  # overrides of each round's snapshot
    seconds: float = 15.0  # between two rounds
    verdict: Verdict
    reason: str


def rounds(case: Case) -> list[Snapshot]:
    """Return the snapshots of a case, one partition in a cluster of three brokers."""
    return [
        snapshot(
            **{
                "partitions": partitions({"orders": 1}),
                "taken_at": NOON + timedelta(seconds=number * case.seconds),
                **observation,
            }
        )
        for number, observation in enumerate(case.observations)
    ]


def view_of(observations: list[Snapshot]) -> View:
    """Return the view of the last round, with the memory of those before."""
    before = None
    for observation in observations[:-1]:
        before = view_of_round(observation, before).memory
    return view_of_round(observations[-1], before)


def judged(judge: Judge, case: Case) -> Finding:
    """Judge a case's last round and return the finding of its only subject."""
    judgement = judge(view_of(rounds(case)))
    assert len(judgement.verdicts) == 1
    return judgement.finding(0)


def names(said: Finding) -> list[tuple[object, object]]:
    """Return the partitions that a group's finding names, in order."""
    found = said.evidence["partitions"]
    assert isinstance(found, list)
    return [(one["topic"], one["partition"]) for one in found]
