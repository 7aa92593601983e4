"""The life of a finding: every pair of what was open and what is said now, as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import pytest

from rules.completeness import Completeness
from rules.facts.snapshot import Snapshot
from rules.judgement import (
    CommitSubjects,
    Judgement,
    Labels,
    NamedSubjects,
    PartitionSubjects,
    Reason,
    Subjects,
)
from rules.open_findings import (
    Change,
    EndReason,
    Identity,
    OpenFinding,
    Step,
    all_gone,
    apply_changes,
    next_changes,
    rebased,
)
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from tests.factories import at, commits, group, partitions, snapshot

NOW: Final = at(0)
HOUR: Final = timedelta(hours=1)
ALL: Final = Completeness.of(snapshot())
OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


class Why(Reason):
    SAID = "said"


def rule(kind: Kind = Kind.STATE, rule_id: str = "some_rule") -> RuleMeta:
    return RuleMeta(
        rule_id=rule_id,
        subject=SubjectKind.PARTITION,
        kind=kind,
        severity=Severity.WARNING,
        for_=timedelta(0),
        summary="For tests.",
    )


def judged(subjects: Subjects, *verdicts: Verdict, meta: RuleMeta | None = None) -> Judgement:
    said = np.array(verdicts, np.int8)
    return Judgement(
        rule=meta or replace(rule(), subject=subjects.kind),
        subjects=subjects,
        verdicts=said,
        reasons=(Why.SAID,),
        reason=np.zeros(len(said), np.int8),
    )


def open_finding(kind: Kind, verdict: Verdict, *, age: timedelta, absent: int = 0) -> OpenFinding:
    labels = (("cluster", "default"), ("partition", "1"), ("topic", "orders"))
    return OpenFinding(
        identity=("some_rule", labels),
        kind=kind,
        verdict=verdict,
        severity=Severity.WARNING,
        reason="said",
        evidence={},
        since=NOW - age,
        last_breach_at=NOW - age,
        last_judged_at=NOW - age,
        absent_rounds=absent,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    why: str
    kind: Kind = Kind.STATE
    before: Verdict | None = BREACH
    age: timedelta = HOUR
    absent: int = 0
    said: Verdict | None  # None: the subject is not among those judged
    complete: bool = True
    step: Step | None
    ended: EndReason | None = None
    after: Verdict | None = None
    counter: int = 0


STATES: Final = (
    Case(id="new-breach", why="only a breach opens", before=None, said=BREACH, step=Step.OPENED, after=BREACH),
    Case(id="new-unknown", why="not knowing opens nothing", before=None, said=UNKNOWN, step=None),
    Case(id="new-ok", why="nothing to tell", before=None, said=OK, step=None),
    Case(id="again", why="it goes on", said=BREACH, step=Step.STILL, after=BREACH),
    Case(id="unseen", why="unknown ends nothing", said=UNKNOWN, step=Step.UNKNOWN, after=UNKNOWN),
    Case(id="still-unseen", why="nor for long", before=UNKNOWN, said=UNKNOWN, step=Step.UNKNOWN, after=UNKNOWN),
    Case(id="seen-again", why="it never ended", before=UNKNOWN, said=BREACH, step=Step.STILL, after=BREACH),
    Case(id="healed", why="states end with OK", said=OK, step=Step.ENDED, ended=EndReason.OK, after=OK),
    Case(id="healed-unseen", why="OK after unknown is OK", before=UNKNOWN, said=OK, step=Step.ENDED, ended=EndReason.OK, after=OK),
    Case(id="old-state", why="a state has no age limit", age=48 * HOUR, said=UNKNOWN, step=Step.UNKNOWN, after=UNKNOWN),
    Case(id="absent-once", why="one answer is no proof", said=None, step=Step.ABSENT, after=BREACH, counter=1),
    Case(id="absent-twice", why="two complete answers are", absent=1, said=None, step=Step.ENDED, ended=EndReason.SUBJECT_GONE, counter=2),
    Case(id="absent-incomplete", why="a gap proves no absence", absent=1, said=None, complete=False, step=Step.ABSENT, after=BREACH, counter=1),
    Case(id="back", why="being judged starts the count anew", absent=1, said=UNKNOWN, step=Step.UNKNOWN, after=UNKNOWN),
    Case(id="unknown-gone", why="unknown does not keep what is deleted", before=UNKNOWN, absent=1, said=None, step=Step.ENDED, ended=EndReason.SUBJECT_GONE, counter=2),
)  # fmt: skip
EVENTS: Final = (
    Case(id="event-ok", why="it happened", kind=Kind.EVENT, said=OK, step=Step.HELD, after=BREACH),
    Case(id="event-unknown", why="it happened", kind=Kind.EVENT, said=UNKNOWN, step=Step.HELD, after=BREACH),
    Case(id="event-almost-a-day", why="not yet", kind=Kind.EVENT, age=24 * HOUR - timedelta(seconds=1), said=OK, step=Step.HELD, after=BREACH),
    Case(id="event-a-day", why="24 hours have passed", kind=Kind.EVENT, age=24 * HOUR, said=OK, step=Step.ENDED, ended=EndReason.EXPIRED),
    Case(id="event-a-day-unknown", why="time ends it, not the verdict", kind=Kind.EVENT, age=24 * HOUR, said=UNKNOWN, step=Step.ENDED, ended=EndReason.EXPIRED),
    Case(id="event-again", why="it happens again", kind=Kind.EVENT, age=30 * HOUR, said=BREACH, step=Step.AGAIN, after=BREACH),
    Case(id="event-absent-a-day", why="time passes without a subject too", kind=Kind.EVENT, age=24 * HOUR, said=None, complete=False, step=Step.ENDED, ended=EndReason.EXPIRED),
    Case(id="event-gone", why="nothing is left to mend", kind=Kind.EVENT, absent=1, said=None, step=Step.ENDED, ended=EndReason.SUBJECT_GONE, counter=2),
)  # fmt: skip


@pytest.mark.parametrize("case", [*STATES, *EVENTS], ids=lambda case: case.id)
def test_steps(case: Case) -> None:
    entry = (
        None
        if case.before is None
        else open_finding(case.kind, case.before, age=case.age, absent=case.absent)
    )
    subjects = PartitionSubjects(
        snapshot(partitions=partitions({"orders": 2 if case.said is not None else 1}))
    )
    verdicts = (OK,) if case.said is None else (OK, case.said)
    changes = next_changes(
        {entry.identity: entry} if entry else {},
        [judged(subjects, *verdicts, meta=rule(case.kind))],
        completeness=ALL if case.complete else Completeness(),
        now=NOW,
    )
    if case.step is None:
        assert changes == [], case.why
        return
    (change,) = changes
    told = (change.step, change.end_reason, change.before, change.after, change.absent_rounds)
    assert told == (case.step, case.ended, case.before, case.after, case.counter), case.why


def run(
    entries: dict[Identity, OpenFinding], verdict: Verdict, now: datetime, kind: Kind
) -> tuple[dict[Identity, OpenFinding], list[Change]]:
    subjects = PartitionSubjects(snapshot(partitions=partitions({"orders": 1})))
    said = [judged(subjects, verdict, meta=rule(kind))]
    changes = next_changes(entries, said, completeness=ALL, now=now)
    return apply_changes(entries, changes, now), changes


def test_a_second_occurrence_starts_the_day_of_an_event_anew() -> None:
    entries, _ = run({}, BREACH, NOW, Kind.EVENT)
    entries, _ = run(entries, BREACH, NOW + 20 * HOUR, Kind.EVENT)
    entries, _ = run(entries, OK, NOW + 30 * HOUR, Kind.EVENT)
    (entry,) = entries.values()
    assert (entry.since, entry.last_breach_at) == (NOW, NOW + 20 * HOUR)
    entries, changes = run(entries, OK, NOW + 44 * HOUR, Kind.EVENT)
    assert [change.end_reason for change in changes] == [EndReason.EXPIRED]
    assert entries == {}


def test_a_finding_is_as_bad_as_its_reason_says() -> None:
    subjects = PartitionSubjects(snapshot(partitions=partitions({"orders": 1})))
    mild = replace(rule(Kind.EVENT), milder=((Why.SAID, Severity.INFO),))
    entries: dict[Identity, OpenFinding] = {}
    for meta, severity in ((mild, Severity.INFO), (rule(Kind.EVENT), Severity.WARNING)):
        said = [judged(subjects, BREACH, meta=meta)]
        changes = next_changes(entries, said, completeness=ALL, now=NOW)
        entries = apply_changes(entries, changes, NOW)
        assert [entry.severity for entry in entries.values()] == [severity]


def test_what_is_not_seen_any_more_is_no_worse_than_it_was() -> None:
    subjects = PartitionSubjects(snapshot(partitions=partitions({"orders": 1})))
    mild = replace(rule(), milder=((Why.SAID, Severity.INFO),))
    entries: dict[Identity, OpenFinding] = {}
    for meta, verdict in ((mild, BREACH), (rule(), UNKNOWN)):
        said = [judged(subjects, verdict, meta=meta)]
        changes = next_changes(entries, said, completeness=ALL, now=NOW)
        entries = apply_changes(entries, changes, NOW)
        assert [entry.severity for entry in entries.values()] == [Severity.INFO]
        assert [change.severity for change in changes] == [Severity.INFO]


def test_a_state_whose_rule_has_become_one_of_events_does_not_end_with_ok() -> None:
    entries, _ = run({}, BREACH, NOW, Kind.STATE)
    entries, _ = run(entries, BREACH, NOW, Kind.EVENT)
    entries, changes = run(entries, OK, NOW + HOUR, Kind.EVENT)
    assert [change.step for change in changes] == [Step.HELD]
    assert [entry.kind for entry in entries.values()] == [Kind.EVENT]


def test_every_occurrence_of_an_event_is_a_transition() -> None:
    entries: dict[Identity, OpenFinding] = {}
    told: list[bool] = []
    for number, verdict in enumerate((BREACH, BREACH, OK, UNKNOWN, BREACH, OK)):
        entries, changes = run(entries, verdict, NOW + number * HOUR, Kind.EVENT)
        told.extend(change.is_transition for change in changes)
    assert told == [True, True, False, False, True, False]
    (entry,) = entries.values()
    assert (entry.since, entry.last_breach_at) == (NOW, NOW + 4 * HOUR)


def test_only_changes_of_the_verdict_of_a_state_are_transitions() -> None:
    entries: dict[Identity, OpenFinding] = {}
    told: list[bool] = []
    for number, verdict in enumerate((BREACH, BREACH, UNKNOWN, UNKNOWN, BREACH, OK)):
        entries, changes = run(entries, verdict, NOW + number * HOUR, Kind.STATE)
        told.extend(change.is_transition for change in changes)
    assert told == [True, False, True, False, True, True]
    assert entries == {}


def commit_snapshot() -> Snapshot:
    return snapshot(
        groups=(group("billing"), group("audit")),
        commits=commits((0, 0, 5), (0, 2, 5), (1, 1, 5), (1, 2, 5)),
    )


def identity_of(labels: Labels) -> Identity:
    return "some_rule", tuple(sorted(labels.items()))


@pytest.mark.parametrize(
    "subjects",
    [
        PartitionSubjects(commit_snapshot()),
        CommitSubjects.all_of(commit_snapshot()),
        CommitSubjects(commit_snapshot(), np.array([3, 0], np.int64)),
        CommitSubjects(commit_snapshot(), np.array([], np.int64)),
        NamedSubjects(SubjectKind.RULE, ({"cluster": "default", "rule": "other"},)),
    ],
    ids=["partitions", "commits", "some-commits", "no-commits", "named"],
)
def test_every_open_subject_is_found_again_whatever_it_is(subjects: Subjects) -> None:
    entry = open_finding(Kind.STATE, BREACH, age=HOUR)
    here = [identity_of(subjects.labels(place)) for place in range(len(subjects))]
    gone = identity_of({"cluster": "default", "group": "x", "topic": "orders", "partition": "7"})
    other = identity_of(
        {"cluster": "other", "group": "billing", "topic": "orders", "partition": "0"}
    )
    entries = {name: replace(entry, identity=name) for name in (*here, gone, other)}
    said = [judged(subjects, *[UNKNOWN] * len(subjects))]
    changes = next_changes(entries, said, completeness=ALL, now=NOW)
    steps = {change.identity: change.step for change in changes}
    assert steps == dict.fromkeys(here, Step.UNKNOWN) | dict.fromkeys((gone, other), Step.ABSENT)


def test_a_rule_that_was_withdrawn_leaves_nothing_open() -> None:
    entry = open_finding(Kind.STATE, BREACH, age=HOUR, absent=1)
    (change,) = next_changes({entry.identity: entry}, [], completeness=ALL, now=NOW)
    assert change.end_reason is EndReason.SUBJECT_GONE


def breached(partition: int = 1) -> Judgement:
    """Say BREACH of one partition of the default snapshot and OK of the others."""
    verdicts = [BREACH if row == partition else OK for row in range(3)]
    return judged(PartitionSubjects(snapshot()), *verdicts)


def test_a_finding_that_was_stored_did_not_open_anew() -> None:
    stored = open_finding(Kind.STATE, UNKNOWN, age=HOUR)
    opened = next_changes({}, [breached()], completeness=ALL, now=NOW)
    assert opened[0].identity == stored.identity
    (first,), (second,) = rebased([opened, opened], {stored.identity: stored})
    assert (first.step, first.before, first.after) == (Step.STILL, UNKNOWN, BREACH)
    assert second.step is Step.OPENED, "it ended in between"
    after = apply_changes({stored.identity: stored}, [first], NOW)
    assert after[stored.identity].since == stored.since


@pytest.mark.parametrize(
    ("reason", "step"), [("said", Step.STILL), ("before", Step.AGAIN)], ids=["same", "another"]
)
def test_an_event_that_was_stored_happened_again_unless_it_is_the_same(
    reason: str, step: Step
) -> None:
    stored = replace(open_finding(Kind.EVENT, BREACH, age=HOUR), reason=reason)
    opened = next_changes({}, [breached()], completeness=ALL, now=NOW)
    ((change,),) = rebased([opened], {stored.identity: stored})
    assert (change.step, change.is_transition) == (step, step is Step.AGAIN)


def test_what_was_not_stored_opened() -> None:
    opened = next_changes({}, [breached()], completeness=ALL, now=NOW)
    assert rebased([opened], {}) == [opened]


def test_another_cluster_id_ends_everything() -> None:
    entry = open_finding(Kind.EVENT, BREACH, age=HOUR)
    (change,) = all_gone({entry.identity: entry})
    assert (change.step, change.end_reason) == (Step.ENDED, EndReason.SUBJECT_GONE)
    assert apply_changes({entry.identity: entry}, [change], NOW) == {}


def test_an_open_finding_carries_what_was_last_said_and_an_event_its_last_breach() -> None:
    for kind, reason in ((Kind.STATE, "said"), (Kind.EVENT, "before")):
        entry = replace(open_finding(kind, BREACH, age=HOUR), reason="before")
        said = judged(PartitionSubjects(snapshot()), OK, UNKNOWN, OK)
        changes = next_changes({entry.identity: entry}, [said], completeness=ALL, now=NOW)
        after = apply_changes({entry.identity: entry}, changes, NOW)[entry.identity]
        assert (after.reason, after.last_judged_at) == (reason, NOW)


@pytest.mark.parametrize("completeness", [Completeness(), ALL], ids=["blind", "complete"])
@pytest.mark.parametrize(
    ("kind", "step", "verdict"),
    [(Kind.STATE, Step.UNKNOWN, UNKNOWN), (Kind.EVENT, Step.HELD, BREACH)],
)
def test_a_rule_that_could_not_judge_makes_its_states_unknown_and_ends_nothing(
    kind: Kind, step: Step, verdict: Verdict, completeness: Completeness
) -> None:
    entry = replace(open_finding(kind, BREACH, age=HOUR), evidence={"log_end_offset": 7})
    cluster = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": "default"},))
    open_findings = {entry.identity: entry}
    for _ in range(3):
        said = judged(cluster, UNKNOWN, meta=rule(kind))
        changes = next_changes(open_findings, [said], completeness=completeness, now=NOW)
        assert [change.step for change in changes] == [step]
        open_findings = apply_changes(open_findings, changes, NOW)
    (after,) = open_findings.values()
    assert (after.verdict, after.evidence) == (verdict, {"log_end_offset": 7})
