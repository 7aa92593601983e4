"""How findings open, continue and end, from one round to the next. Pure: the result is stored.

Only a BREACH opens a finding. UNKNOWN never ends one. States end when the next verdict is OK. Events are
not undone: they stay BREACH, whatever the rule says later, until 24 hours have passed since its last
BREACH, or a person closes them. A rule of events says BREACH only in the round that detects the event, so
that each BREACH is notified separately. Where events have names of their own (a leader epoch), a repetition
concerns that event alone. A weaker event never replaces a worse one. A subject that is absent from two
complete rounds ends its finding, except for findings of lost records, which only note it; a round that
could not read all subjects of a kind proves no absence, and neither does a rule that judges only what it
remembers.

Judgements are columns of tens of thousands of subjects. Rows are built only for breaches and for
the subjects of findings that are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import numpy as np

from rules.completeness import Completeness
from rules.event_updates import update_event
from rules.evidence import Evidence
from rules.facts.column import Int64s
from rules.judgement import (
    Finding,
    Judgement,
    Subjects,
)
from rules.verdict import Kind, RuleMeta, Severity, Verdict

EVENT_LASTS: Final = timedelta(hours=24)
ABSENT_ROUNDS: Final = 2  # one answer may have been cut short without saying so

Identity = tuple[str, tuple[tuple[str, str], ...]]  # rule id, sorted labels
NO_OTHERS: Final[Mapping[str, Int64s]] = MappingProxyType({})


class EndReason(StrEnum):
    """Why a finding is not open any more."""

    OK = "ok"  # the rule says so
    SUBJECT_GONE = "subject_gone"  # a deleted topic, an expired group, a rule that was withdrawn
    EXPIRED = "expired"  # an event, a day later
    CLOSED = "closed"  # by a person


class Step(StrEnum):
    """What a round does to one finding."""

    OPENED = "opened"
    STILL = "still"  # a state that is BREACH in another round
    AGAIN = "again"  # an event that happened once more, with evidence of its own
    UNKNOWN = "unknown"  # a state that cannot be judged now: it stays open
    HELD = "held"  # an event that the rule does not report any more: it stays BREACH
    ABSENT = "absent"  # its subject was not among those judged
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFinding:
    """The stored state of an open finding."""

    identity: Identity
    kind: Kind
    verdict: Verdict  # BREACH or UNKNOWN
    severity: Severity
    reason: str  # what the rule last said
    evidence: Evidence
    since: datetime  # aware, UTC: when it opened
    last_breach_at: datetime
    last_judged_at: datetime
    absent_rounds: int = 0  # complete rounds in a row without its subject

    @property
    def is_subject_gone(self) -> bool:
        """Whether its subject does not exist any more, such as a topic that was deleted since."""
        return self.absent_rounds >= ABSENT_ROUNDS

    def shifted(self, step: timedelta) -> OpenFinding:
        """Return the finding with all times moved by a step of the clock."""
        return replace(
            self,
            since=self.since + step,
            last_breach_at=self.last_breach_at + step,
            last_judged_at=self.last_judged_at + step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One finding's step in one round."""

    step: Step
    identity: Identity
    before: Verdict | None  # None: it was not open
    after: Verdict | None  # None: it is not judged any more
    finding: Finding | None = None  # what the rule said; absent if the subject was
    absent_rounds: int = 0
    end_reason: EndReason | None = None
    last_severity: Severity | None = None  # of the last breach, where this round says none
    since: datetime | None = None  # when it opened, if that was an earlier round's; else None
    last_breach_at: datetime | None = None  # likewise

    @property
    def severity(self) -> Severity | None:
        """Return the severity of the open finding; only a breach can change it."""
        if self.finding is None or self.last_severity is not None:
            return self.last_severity
        return self.finding.severity

    @property
    def is_transition(self) -> bool:
        """Whether a notification may be due: it opened, ended, changed or happened again."""
        if self.end_reason is not None or self.step is Step.AGAIN:
            return True
        return self.before is not self.after


@dataclass(frozen=True, slots=True)
class PlacedChange:
    """A change, and the judgement that makes it; None: the subject was not judged."""

    change: Change
    judgement: Judgement | None
    position: int | None  # of the subject there; None: the judgement is about the whole cluster


def next_changes(
    open_findings: Mapping[Identity, OpenFinding],
    judgements: Sequence[Judgement],
    *,
    completeness: Completeness,
    now: datetime,
) -> list[Change]:
    """Return what a round changes: judgements in order, then the findings without a subject."""
    placed = placed_changes(open_findings, judgements, completeness=completeness, now=now)
    return [entry.change for entry in placed]


def placed_changes(
    open_findings: Mapping[Identity, OpenFinding],
    judgements: Sequence[Judgement],
    *,
    completeness: Completeness,
    now: datetime,
    others: Mapping[str, Int64s] = NO_OTHERS,
) -> list[PlacedChange]:
    """Return the changes with their places; `others` are positions by rule that have open findings besides."""
    by_rule: dict[str, list[Identity]] = {}
    for identity in open_findings:
        by_rule.setdefault(identity[0], []).append(identity)
    changes: list[PlacedChange] = []
    for judgement in judgements:
        rule_id = judgement.rule.rule_id
        identities = by_rule.get(rule_id, [])
        skipped = others.get(rule_id)
        for position, finding in _findings_of(judgement, identities, open_findings, skipped):
            identity = finding.identity
            change = _judge_subject(identity, open_findings.get(identity), finding, now)
            if change is not None:
                changes.append(PlacedChange(change, judgement, position))
    seen = {entry.change.identity for entry in changes}
    absent = [entry for identity, entry in open_findings.items() if identity not in seen]
    rules = {judgement.rule.rule_id: judgement.rule for judgement in judgements}
    gone = (
        _mark_absent(entry, rules.get(entry.identity[0]), completeness, now) for entry in absent
    )
    return [*changes, *(PlacedChange(change, None, None) for change in gone)]


def apply_changes(
    open_findings: Mapping[Identity, OpenFinding], changes: Iterable[Change], now: datetime
) -> dict[Identity, OpenFinding]:
    """Return the open findings one round later."""
    after = dict(open_findings)
    for change in changes:
        if change.step is Step.ENDED:
            after.pop(change.identity, None)
        elif change.step is Step.OPENED and change.finding is not None:
            after[change.identity] = OpenFinding(
                identity=change.identity,
                kind=change.finding.rule.kind,
                verdict=change.after or Verdict.BREACH,
                severity=change.severity or change.finding.severity,
                reason=change.finding.reason,
                evidence=change.finding.evidence,
                since=change.since or now,
                last_breach_at=change.last_breach_at or now,
                last_judged_at=now,
            )
        else:
            after[change.identity] = _carry(after[change.identity], change, now)
    return after


def _carry(entry: OpenFinding, change: Change, now: datetime) -> OpenFinding:
    said = None if change.step is Step.HELD else change.finding
    # An event keeps the evidence of its last breach.
    return replace(
        entry,
        kind=entry.kind if said is None else said.rule.kind,
        verdict=entry.verdict if change.after is None else change.after,
        severity=entry.severity if said is None else change.severity or said.severity,
        reason=entry.reason if said is None else said.reason,
        evidence=entry.evidence if said is None else said.evidence,
        last_breach_at=now if change.step in (Step.STILL, Step.AGAIN) else entry.last_breach_at,
        last_judged_at=entry.last_judged_at if change.finding is None else now,
        absent_rounds=change.absent_rounds,
    )


def all_gone(open_findings: Mapping[Identity, OpenFinding]) -> list[Change]:
    """End everything: the cluster's name belongs to another cluster id now."""
    return [
        Change(
            step=Step.ENDED,
            identity=identity,
            before=entry.verdict,
            after=None,
            end_reason=EndReason.SUBJECT_GONE,
        )
        for identity, entry in open_findings.items()
    ]


def rebased(
    rounds: Sequence[Sequence[Change]], stored: Mapping[Identity, OpenFinding]
) -> list[list[Change]]:
    """Correct the changes of rounds that ran before the stored findings could be read.

    A finding that is stored as open did not open in those rounds: its first OPENED was the same breach,
    or an event that happened again. An event with the same evidence was detected a second time, by a
    process without memory.
    """
    left = dict(stored)
    return [
        [_rebase(change, left.pop(change.identity, None)) for change in changes]
        for changes in rounds
    ]


def _rebase(change: Change, stored: OpenFinding | None) -> Change:
    if stored is None or change.step is not Step.OPENED:
        return change
    said = change.finding
    is_new = said is not None and (said.reason, said.evidence) != (stored.reason, stored.evidence)
    if said is not None and is_new and stored.kind is Kind.EVENT:
        return _repeat(stored, said)
    return replace(change, step=Step.STILL, before=stored.verdict)


def _judge_subject(
    identity: Identity, entry: OpenFinding | None, finding: Finding, now: datetime
) -> Change | None:
    """Return the change of a judged subject; None where nothing was open and nothing opens."""
    if finding.verdict is not Verdict.BREACH:
        return None if entry is None else _not_breached(entry, finding, now)
    if entry is not None and entry.kind is Kind.EVENT:
        return _repeat(entry, finding)
    return Change(
        step=Step.OPENED if entry is None else Step.STILL,
        identity=identity,
        before=None if entry is None else entry.verdict,
        after=Verdict.BREACH,
        finding=finding,
    )


def _repeat(entry: OpenFinding, finding: Finding) -> Change:
    """Return the change of an event that is reported again; one that adds nothing changes nothing."""
    updated = update_event(entry.reason, entry.evidence, entry.severity, finding)
    is_news = updated is not None
    return Change(
        step=Step.AGAIN if is_news else Step.HELD,
        identity=entry.identity,
        before=entry.verdict,
        after=entry.verdict,
        finding=updated or finding,
    )


def _not_breached(entry: OpenFinding, finding: Finding, now: datetime) -> Change:
    """Return the change of an open finding whose verdict is not BREACH."""
    after: Verdict | None = finding.verdict
    end: EndReason | None = None
    if entry.kind is Kind.EVENT:
        is_over = _is_over(entry, now)
        step, after = (Step.ENDED, None) if is_over else (Step.HELD, entry.verdict)
        end = EndReason.EXPIRED if is_over else None
    elif finding.verdict is Verdict.UNKNOWN:
        step = Step.UNKNOWN
    else:
        step, end = Step.ENDED, EndReason.OK
    return Change(
        step=step,
        identity=entry.identity,
        before=entry.verdict,
        after=after,
        finding=finding,
        end_reason=end,
        last_severity=entry.severity,
    )


def _mark_absent(
    entry: OpenFinding, rule: RuleMeta | None, completeness: Completeness, now: datetime
) -> Change:
    seen = Completeness() if rule is not None and rule.forgets else completeness
    rounds = entry.absent_rounds + seen.proves_absence(dict(entry.identity[1]), entry.kind)
    outlives = rule is not None and rule.outlives_subject
    change = Change(
        step=Step.ABSENT,
        identity=entry.identity,
        before=entry.verdict,
        after=entry.verdict,
        absent_rounds=min(rounds, ABSENT_ROUNDS),
    )
    if rounds >= ABSENT_ROUNDS and not outlives:
        return replace(change, step=Step.ENDED, after=None, end_reason=EndReason.SUBJECT_GONE)
    if entry.kind is Kind.EVENT and _is_over(entry, now):
        return replace(change, step=Step.ENDED, after=None, end_reason=EndReason.EXPIRED)
    return change


def _is_over(entry: OpenFinding, now: datetime) -> bool:
    return now - entry.last_breach_at >= EVENT_LASTS


def _findings_of(
    judgement: Judgement,
    identities: Sequence[Identity],
    open_findings: Mapping[Identity, OpenFinding],
    others: Int64s | None,
) -> list[tuple[int | None, Finding]]:
    """Return the findings of a judgement with their positions: its breaches, and subjects of open findings.

    A rule that could not judge at all has one verdict for the whole cluster. It counts for every open
    subject, so that none is taken to be gone; their last evidence is kept.
    """
    if is_of_subjects(judgement):
        return _rows(judgement, identities, others)
    said = judgement.finding(0)
    return [
        (None, replace(said, labels=dict(identity[1]), evidence=open_findings[identity].evidence))
        for identity in identities
    ]


def is_of_subjects(judgement: Judgement) -> bool:
    """Whether a rule judged its subjects, and not the whole cluster because it could not."""
    return judgement.subjects.kind is judgement.rule.subject


def _rows(
    judgement: Judgement, identities: Sequence[Identity], others: Int64s | None
) -> list[tuple[int | None, Finding]]:
    """Return the row view of every breach and of the subject of every open finding, in order."""
    if judgement.events is not None:
        return _event_rows(judgement, identities)
    is_breach = judgement.verdicts == Verdict.BREACH
    if others is not None:
        is_breach[others] = False
    positions = set(np.flatnonzero(is_breach).tolist())
    positions.update(
        place for place in find_places(judgement.subjects, identities) if place is not None
    )
    return [(position, judgement.finding(position)) for position in sorted(positions)]


def _event_rows(
    judgement: Judgement, identities: Sequence[Identity]
) -> list[tuple[int | None, Finding]]:
    """Return every event of this round, and every open event whose subject exists."""
    said = [(event.position, judgement.event_finding(event)) for event in judgement.events or ()]
    new = {finding.identity for _, finding in said}
    old = [identity for identity in identities if identity not in new]
    held = zip(old, find_places(judgement.subjects, old), strict=True)
    return [
        *said,
        *((at, _held_finding(judgement, key[1], at)) for key, at in held if at is not None),
    ]


def _held_finding(
    judgement: Judgement, labels: tuple[tuple[str, str], ...], position: int
) -> Finding:
    """Return the finding of an older event: OK, or UNKNOWN where the round could not judge."""
    is_unknown = judgement.verdicts[position] == Verdict.UNKNOWN
    return Finding(
        rule=judgement.rule,
        labels=dict(labels),
        verdict=Verdict.UNKNOWN if is_unknown else Verdict.OK,
        reason=str(judgement.reasons[int(judgement.reason[position])]),
        evidence={},
    )


def find_places(subjects: Subjects, identities: Sequence[Identity]) -> list[int | None]:
    """Return the positions of the subjects of these findings; None for those that are gone."""
    return subjects.find([dict(identity[1]) for identity in identities]) if identities else []
