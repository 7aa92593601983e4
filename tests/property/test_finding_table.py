"""The table of open findings says what the law of a single finding says, and stores no less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue.all_rules import judge_blind, judge_round
from rules.completeness import Completeness
from rules.facts.column import Column
from rules.facts.memory import Memory, advance
from rules.finding_table import FindingTable
from rules.judgement import (
    Event,
    Judgement,
    Labels,
    PartitionSubjects,
    Reason,
    decide_cluster,
)
from rules.open_findings import (
    Change,
    Identity,
    OpenFinding,
    Step,
    apply_changes,
    next_changes,
)
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View
from tests.factories import at, partitions, snapshot
from tests.property.worlds import NOTHING_HIDDEN, Hidden, Round, courses, hidden, observe

STATE, EVENT, NAMED = "state", "event", "named"
OPEN_STEPS: Final = (Step.STILL, Step.UNKNOWN, Step.HELD, Step.ABSENT)


class Why(Reason):
    SAID = "said"
    MILD = "mild"
    BLIND = "blind"


def rule(rule_id: str) -> RuleMeta:
    return RuleMeta(
        rule_id=rule_id,
        subject=SubjectKind.PARTITION,
        kind=Kind.STATE if rule_id == STATE else Kind.EVENT,
        severity=Severity.CRITICAL,
        summary="For tests.",
        milder=((Why.MILD, Severity.WARNING),),
        names_events=rule_id == NAMED,
        outlives_subject=rule_id == NAMED,
    )


class Both:
    """Two of the same: findings by the law, and the table; and what was stored of the table."""

    def __init__(self) -> None:
        self.open: dict[Identity, OpenFinding] = {}
        self.table = FindingTable()
        self.stored: dict[Identity, OpenFinding] = {}

    def see(
        self, judgements: Sequence[Judgement], completeness: Completeness, seconds: float
    ) -> None:
        now = at(seconds)
        changes = next_changes(self.open, judgements, completeness=completeness, now=now)
        before, self.open = self.open, apply_changes(self.open, changes, now)
        altering, self.table = self.table.advance(judgements, completeness=completeness, now=now)
        self.stored = apply_changes(self.stored, altering, now)
        assert plain(self.table) == plain(self.open)
        assert {key: lasting(row) for key, row in self.stored.items()} == {
            key: lasting(row) for key, row in self.open.items()
        }
        assert transitions(altering) == transitions(changes)
        assert all(is_altering(change, before, self.open) for change in altering)
        assert sum(self.table.counts.values()) == len(self.table) == len(self.open)
        for identity in self.table.moving():
            repetition = self.table.repetition(identity)
            assert repetition is not None
            again = apply_changes(self.open, [repetition], now)
            assert plain(again) == plain(self.open)


def plain(rows: Mapping[Identity, OpenFinding]) -> dict[Identity, OpenFinding]:
    return {key: replace(row, evidence=dict(row.evidence)) for key, row in rows.items()}


def lasting(row: OpenFinding) -> OpenFinding:
    """Leave out what moves on without a change: evidence and times, of an event the judgement's alone."""
    if row.kind is Kind.EVENT:
        return replace(row, last_judged_at=row.since, evidence=dict(row.evidence))
    return replace(row, last_judged_at=row.since, last_breach_at=row.since, evidence={})


def transitions(changes: Sequence[Change]) -> list[Change]:
    listed = [change for change in changes if change.is_transition]
    return sorted(listed, key=lambda change: change.identity)


def is_altering(
    change: Change, before: Mapping[Identity, OpenFinding], after: Mapping[Identity, OpenFinding]
) -> bool:
    if change.step not in OPEN_STEPS:
        return True
    return lasting(before[change.identity]) != lasting(after[change.identity])


@given(
    course=courses,
    unseen=st.lists(hidden, min_size=8, max_size=8),
    blind=st.sets(st.integers(0, 7), max_size=2),
    seconds=st.sampled_from((40, 600)),
)
def test_every_rule_over_rounds_that_see_less(
    course: Sequence[Round], unseen: Sequence[Hidden], blind: set[int], seconds: int
) -> None:
    both, memory = Both(), None
    since: Mapping[str, int] = {}
    views: list[Hidden] = [NOTHING_HIDDEN, *unseen]
    for number, (truth, missing) in enumerate(zip(course, views, strict=False)):
        now = number * seconds
        if number in blind:
            both.see(judge_blind("default", {}, at(now)).judgements, Completeness(), now)
            continue
        seen = observe(truth, missing, now, has_ids=True)
        before: Memory | None = memory
        memory = advance(seen, before)
        view = View(snapshot=seen, memory=memory, before=before, now=seen.taken_at)
        judged = judge_round(view, since)
        since = judged.unknown_since
        both.see(judged.judgements, Completeness.of(seen), now)


@dataclass(frozen=True, slots=True)
class Said:
    """What the three rules say in a round; None: the rule could not judge at all."""

    hours: int
    topics: int  # that exist, two partitions each
    whole: bool  # whether the list of them is complete
    verdicts: tuple[
        tuple[int, ...] | None, ...
    ]  # by rule and partition: 0 to 3, 3 is a mild breach


SAID = st.builds(
    Said,
    st.sampled_from((0, 1, 23)),
    st.integers(0, 2),
    st.booleans(),
    st.tuples(
        *[st.none() | st.tuples(*[st.integers(0, 3)] * 4)] * 3,
    ),
)


def judgements(said: Said, number: int) -> Iterator[Judgement]:
    seen = snapshot(partitions=partitions({f"topic-{n}": 2 for n in range(said.topics)}))
    subjects = PartitionSubjects(seen)
    for rule_id, values in zip((STATE, EVENT, NAMED), said.verdicts, strict=True):
        if values is None:
            yield decide_cluster(rule(rule_id), "default", Why.BLIND)
            continue
        codes = np.array(values[: len(subjects)], np.int8)
        events = [
            Event(
                position=row,
                labels=event_labels(subjects.labels(row), int(code)),
                reason=Why.SAID if code == Verdict.BREACH else Why.MILD,
                evidence={"number": number // 2},
            )
            for row, code in enumerate(codes.tolist())
            if code >= Verdict.BREACH
        ]
        yield Judgement(
            rule=rule(rule_id),
            subjects=subjects,
            verdicts=np.minimum(codes, np.int8(Verdict.BREACH)),
            reasons=tuple(Why),
            reason=(codes == 3).astype(np.int8),
            evidence={"number": Column.known(np.full(len(codes), number, np.int64))},
            events=tuple(events) if rule_id == NAMED else None,
        )


def event_labels(labels: Labels, code: int) -> dict[str, str]:
    return {**labels, "leader_epoch": str(code)}


@given(st.lists(SAID, min_size=2, max_size=8))
def test_whatever_rules_say(rounds: Sequence[Said]) -> None:
    both, elapsed = Both(), timedelta(0)
    for number, said in enumerate(rounds):
        elapsed += timedelta(hours=said.hours, seconds=15)
        completeness = Completeness(was_made=True, placement=said.whole)
        both.see(list(judgements(said, number)), completeness, elapsed.total_seconds())
