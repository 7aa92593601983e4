"""Rounds as the rules about losses judge them, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rules.catalogue import committed_records_lost, records_possibly_lost
from rules.facts.memory import Memory
from rules.judgement import Finding
from rules.remembering import view_of_round
from rules.verdict import Verdict
from tests.factories import at, snapshot

COMMITTED, POSSIBLY = "committed_records_lost", "records_possibly_lost"
JUDGES: Final = {
    COMMITTED: committed_records_lost.judge,
    POSSIBLY: records_possibly_lost.judge,
}
RETURNED, PROVEN_ELSEWHERE = "former_leader_returned", "proven"


@dataclass(frozen=True, slots=True)
class Said:
    """One breach: in which round, by which rule, why."""

    number: int
    rule: str
    finding: Finding

    @property
    def why(self) -> tuple[str, str, str]:
        """Return rule, reason and severity."""
        return self.rule, self.finding.reason, str(self.finding.severity)


def play(*observations: dict[str, Any], memory: Memory | None = None, first: int = 0) -> list[Said]:
    """Judge round after round, 15 s apart; return the breaches of both rules."""
    return played(*observations, memory=memory, first=first)[0]


def played(
    *observations: dict[str, Any], memory: Memory | None = None, first: int = 0
) -> tuple[list[Said], Memory]:
    """Judge round after round; return the breaches, and what is remembered in the end."""
    found: list[Said] = []
    for number, observation in enumerate(observations, first):
        view = view_of_round(snapshot(taken_at=at(15 * number), **observation), memory)
        memory = view.memory
        for rule, judge in JUDGES.items():
            breaches = judge(view).findings(Verdict.BREACH)
            found += [Said(number, rule, finding) for finding in breaches]
    assert memory is not None
    return found, memory


def settled(*observations: dict[str, Any]) -> list[Said]:
    """Return what is told of a return, also where it is the other rule that tells it as bad."""
    reasons = (RETURNED, PROVEN_ELSEWHERE)
    return [one for one in play(*observations) if one.finding.reason in reasons]


def memory_of(*observations: dict[str, Any]) -> Memory:
    """Return what is remembered after rounds that are 15 s apart."""
    memory: Memory | None = None
    for number, observation in enumerate(observations):
        memory = view_of_round(snapshot(taken_at=at(15 * number), **observation), memory).memory
    assert memory is not None
    return memory
