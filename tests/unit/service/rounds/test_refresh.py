"""What moves on of open findings is stored now and then, some findings in each round."""

from __future__ import annotations

import numpy as np

from rules.completeness import Completeness
from rules.facts.column import Column
from rules.finding_table import FindingTable
from rules.judgement import Judgement, PartitionSubjects
from rules.open_findings import Change, Step
from rules.verdict import Kind, Verdict
from service.rounds.refresh import AFTER, MOST, Refresh
from tests.alerting import Why, rule
from tests.factories import at, partitions, snapshot

ROWS = MOST + 50
SEEN = snapshot(partitions=partitions({"orders": ROWS}))


def judgement(number: int, kind: Kind) -> Judgement:
    return Judgement(
        rule=rule(kind=kind),
        subjects=PartitionSubjects(SEEN),
        verdicts=np.full(ROWS, Verdict.BREACH if number == 0 or kind is Kind.STATE else 0, np.int8),
        reasons=tuple(Why),
        reason=np.zeros(ROWS, np.int8),
        evidence={"lag": Column.known(np.full(ROWS, number, np.int64))},
    )


def rounds(kind: Kind, *seconds: float) -> list[tuple[list[Change], list[Change]]]:
    """Return of each round its changes, and those that store what has moved on."""
    table, refresh, made = FindingTable(), Refresh(), []
    for number, second in enumerate(seconds):
        changes, table = table.advance(
            [judgement(number, kind)], completeness=Completeness.of(SEEN), now=at(second)
        )
        made.append((changes, refresh.take(table, changes, at(second))))
    return made


def test_a_finding_that_is_unchanged_is_stored_once_in_a_while() -> None:
    period = AFTER.total_seconds()
    made = rounds(Kind.STATE, 0, 15, period, period + 15, period + 30, 2 * period)
    assert [len(changes) for changes, _ in made] == [ROWS, 0, 0, 0, 0, 0]
    assert [len(moved_on) for _, moved_on in made] == [0, 0, MOST, ROWS - MOST, 0, MOST]
    again = [change for _, moved_on in made[:5] for change in moved_on]
    assert {change.step for change in again} == {Step.STILL}
    assert len({change.identity for change in again}) == ROWS
    assert {change.finding.evidence["lag"] for change in again if change.finding} == {2, 3}


def test_an_event_does_not_move_on() -> None:
    made = rounds(Kind.EVENT, 0, AFTER.total_seconds(), 3 * AFTER.total_seconds())
    assert [len(moved_on) for _, moved_on in made] == [0, 0, 0]
