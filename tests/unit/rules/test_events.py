"""Events from round to round: each occurrence is told once, with its own evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rules.catalogue.all_rules import RULES, judge_round
from rules.completeness import Completeness
from rules.facts.column import Column, Ragged
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import TransactionLog
from rules.open_findings import Change, Identity, OpenFinding, apply_changes, next_changes
from rules.remembering import view_of_round
from rules.verdict import Kind
from tests.factories import (
    at,
    commits,
    ended,
    epoch_ends,
    group,
    offsets,
    partitions,
    producers,
    snapshot,
)

EVENTS = {rule.meta.rule_id for rule in RULES if rule.meta.kind is Kind.EVENT}


def observe(number: int, committed: int, log_start: int = 0) -> Snapshot:
    """Return one of several observes one group on one partition, 15 s apart."""
    placed = partitions({"orders": 1})
    return snapshot(
        taken_at=at(15 * number),
        partitions=placed,
        groups=(group(),),
        commits=commits((0, 0, committed)),
        offsets=offsets(1, log_start_offset=[log_start]),
    )


def told(observations: Sequence[Snapshot]) -> list[tuple[int, str, dict[str, Any]]]:
    """Play rounds; return the transitions of events: round, step and evidence."""
    memory: Memory | None = None
    entries: dict[Identity, OpenFinding] = {}
    made: list[tuple[int, Change]] = []
    for number, seen in enumerate(observations):
        view = view_of_round(seen, memory)
        memory = view.memory
        said = judge_round(view, {}).judgements
        changes = next_changes(entries, said, completeness=Completeness.of(seen), now=seen.taken_at)
        entries = apply_changes(entries, changes, seen.taken_at)
        made += [(number, change) for change in changes if change.is_transition]
    return [
        (number, str(change.step), dict(change.finding.evidence))
        for number, change in made
        if change.finding is not None and change.identity[0] in EVENTS
    ]


def test_a_second_rewind_is_told_with_its_own_offsets() -> None:
    offsets_ = (90, 80, 80, 95, 10, 10, 10)
    steps = told([observe(number, committed) for number, committed in enumerate(offsets_)])
    assert [(number, step, said["rewound_by"]) for number, step, said in steps] == [
        (1, "opened", 10),
        (4, "again", 85),
    ]


def test_two_rewinds_in_two_rounds_are_two() -> None:
    steps = told([observe(number, committed) for number, committed in enumerate((90, 80, 70))])
    assert [(number, step) for number, step, _ in steps] == [(1, "opened"), (2, "again")]


def test_what_expires_in_two_steps_is_told_twice_however_long_it_unchanged() -> None:
    starts = (0, 60, 60, 60, 80, 80)
    observations = [observe(number, 50, start) for number, start in enumerate(starts)]
    steps = told([*observations, observe(len(observations), 90, 80)])
    assert [(number, step, said["expired_offsets"]) for number, step, said in steps] == [
        (1, "opened", 10),
        (4, "again", 30),
    ]


def test_what_is_found_out_later_is_told_beside_what_was_told_before() -> None:
    """A transaction that is lost whole is named a round after the range that is lost."""
    allowed = {"unclean_election_enabled": Column.of([1])}
    alone = partitions({"orders": 1}, isr=Ragged.of([(1,)]), **allowed)
    moved = partitions({"orders": 1}, leader=Column.of([2]), isr=Ragged.of([(2,)]), **allowed)
    log = TransactionLog(
        is_read=True,
        ended=(ended(marker_epoch=4, partitions=frozenset({TopicPartition("orders", 0)})),),
    )
    after = {"partitions": moved, "offsets": offsets(1, leader_epoch=[6])}
    asked = replace(producers(rows=1, observed=[0]), epochs={0: {}})
    steps = told(
        [
            snapshot(partitions=alone),
            snapshot(
                taken_at=at(15), transaction_log=log, epoch_ends=epoch_ends((0, 5, 73)), **after
            ),
            snapshot(taken_at=at(16), producers=asked, **after),
        ]
    )
    lost = [(number, step, said) for number, step, said in steps if "certain_offsets" in said]
    assert lost[0][:2] == (1, "opened")
    number, step, said = lost[-1]
    assert (number, step) == (2, "again")
    assert (said["certain_offsets"], said["lost_transaction_count"]) == (27, 1)
