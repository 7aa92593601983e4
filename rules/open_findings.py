"""How findings open, go on and end, from one round to the next. Pure: what it returns is stored.

Only a BREACH opens a finding. UNKNOWN never ends one. States end when the next verdict is OK.
Events do not un-happen: they stay BREACH, whatever the rule says later, until 24 hours have passed
since it last said BREACH, or a person closes them. A rule of events says BREACH only in the round
that finds out that it happened, so that every BREACH of it is told by itself. A subject that is
absent from two complete rounds ends its finding; a round that could not see all of its kind proves
no absence, and neither does a rule that judges only what it remembers.

Judgements are columns of tens of thousands of subjects. Rows are built only for breaches and for
the subjects of findings that are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import numpy as np

from rules.completeness import Completeness
from rules.evidence import Evidence, EvidenceValue
from rules.facts.snapshot import Snapshot
from rules.judgement import (
    CommitSubjects,
    Finding,
    Judgement,
    Labels,
    PartitionSubjects,
    Subjects,
)
from rules.verdict import Kind, Severity, Verdict

EVENT_LASTS: Final = timedelta(hours=24)
ABSENT_ROUNDS: Final = 2  # one answer may have been cut short without saying so

Identity = tuple[str, tuple[tuple[str, str], ...]]  # rule id, sorted labels


class EndReason(StrEnum):
    """Why a finding is open no more."""

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
    HELD = "held"  # an event that the rule no longer sees: it stays BREACH
    ABSENT = "absent"  # its subject was not among those judged
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFinding:
    """What has to be remembered of an open finding."""

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

    def shifted(self, step: timedelta) -> OpenFinding:
        """Return it with all times moved by a step of the clock."""
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
    after: Verdict | None  # None: it is judged no more
    finding: Finding | None = None  # what the rule said; absent if the subject was
    absent_rounds: int = 0
    end_reason: EndReason | None = None

    @property
    def is_transition(self) -> bool:
        """Whether somebody may have to be told: it opened, ended, changed or happened again."""
        if self.end_reason is not None or self.step is Step.AGAIN:
            return True
        return self.before is not self.after


def next_changes(
    open_findings: Mapping[Identity, OpenFinding],
    judgements: Sequence[Judgement],
    *,
    completeness: Completeness,
    now: datetime,
) -> list[Change]:
    """Return what a round changes: judgements in order, then the findings without a subject."""
    by_rule: dict[str, list[Identity]] = {}
    for identity in open_findings:
        by_rule.setdefault(identity[0], []).append(identity)
    changes: list[Change] = []
    for judgement in judgements:
        known = by_rule.get(judgement.rule.rule_id, [])
        for finding in _said_of(judgement, known, open_findings):
            identity = finding.identity
            change = _judged(identity, open_findings.get(identity), finding, now)
            if change is not None:
                changes.append(change)
    seen = {change.identity for change in changes}
    absent = [entry for identity, entry in open_findings.items() if identity not in seen]
    forgetful = {judgement.rule.rule_id for judgement in judgements if judgement.rule.forgets}
    return [
        *changes,
        *(
            _absent(entry, Completeness() if entry.identity[0] in forgetful else completeness, now)
            for entry in absent
        ),
    ]


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
                verdict=Verdict.BREACH,
                severity=change.finding.severity,
                reason=change.finding.reason,
                evidence=change.finding.evidence,
                since=now,
                last_breach_at=now,
                last_judged_at=now,
            )
        else:
            after[change.identity] = _carried(after[change.identity], change, now)
    return after


def _carried(entry: OpenFinding, change: Change, now: datetime) -> OpenFinding:
    said = None if change.step is Step.HELD else change.finding
    # An event keeps the evidence of its last breach.
    return OpenFinding(
        identity=entry.identity,
        kind=entry.kind if said is None else said.rule.kind,
        verdict=entry.verdict if change.after is None else change.after,
        severity=entry.severity if said is None else said.severity,
        reason=entry.reason if said is None else said.reason,
        evidence=entry.evidence if said is None else said.evidence,
        since=entry.since,
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
    """Return the changes of rounds that were made before the stored findings could be read.

    What is stored as open did not open in those rounds: its first OPENED was the same breach, still,
    or an event that happened again. One with the very same evidence was found a second time, by a
    process that remembered nothing.
    """
    left = dict(stored)
    return [[_rebased(change, left.pop(change.identity, None)) for change in one] for one in rounds]


def _rebased(change: Change, stored: OpenFinding | None) -> Change:
    if stored is None or change.step is not Step.OPENED:
        return change
    said = change.finding
    is_new = said is not None and (said.reason, said.evidence) != (stored.reason, stored.evidence)
    happened = stored.kind is Kind.EVENT and is_new
    return replace(change, step=Step.AGAIN if happened else Step.STILL, before=stored.verdict)


def _judged(
    identity: Identity, entry: OpenFinding | None, finding: Finding, now: datetime
) -> Change | None:
    """Return the step of a subject that was judged; None where nothing was open and none opens."""
    if finding.verdict is not Verdict.BREACH:
        return None if entry is None else _not_breached(entry, finding, now)
    return Change(
        step=_breach_step(entry),
        identity=identity,
        before=None if entry is None else entry.verdict,
        after=Verdict.BREACH,
        finding=_sharpened(entry, finding),
    )


def _not_breached(entry: OpenFinding, finding: Finding, now: datetime) -> Change:
    """Return the step of what is open, and of which the rule does not say BREACH."""
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
    )


def _sharpened(entry: OpenFinding | None, finding: Finding) -> Finding:
    """Keep the evidence of the event that this one says more of; None takes back what was told."""
    if entry is None or finding.reason not in finding.rule.sharpening:
        return finding
    known, said = _known(entry.evidence), _known(finding.evidence)
    if any(known[name] != said[name] for name in known.keys() & said.keys()):
        return finding  # it says more of another event
    return replace(finding, evidence={**entry.evidence, **finding.evidence})


def _known(evidence: Evidence) -> dict[str, EvidenceValue]:
    return {name: value for name, value in evidence.items() if value is not None}


def _breach_step(entry: OpenFinding | None) -> Step:
    if entry is None:
        return Step.OPENED
    return Step.AGAIN if entry.kind is Kind.EVENT else Step.STILL


def _absent(entry: OpenFinding, completeness: Completeness, now: datetime) -> Change:
    rounds = entry.absent_rounds + completeness.proves_absence(dict(entry.identity[1]), entry.kind)
    change = Change(
        step=Step.ABSENT,
        identity=entry.identity,
        before=entry.verdict,
        after=entry.verdict,
        absent_rounds=rounds,
    )
    if rounds >= ABSENT_ROUNDS:
        return replace(change, step=Step.ENDED, after=None, end_reason=EndReason.SUBJECT_GONE)
    if entry.kind is Kind.EVENT and _is_over(entry, now):
        return replace(change, step=Step.ENDED, after=None, end_reason=EndReason.EXPIRED)
    return change


def _is_over(entry: OpenFinding, now: datetime) -> bool:
    return now - entry.last_breach_at >= EVENT_LASTS


# ------------------------------------------------------------------ from columns to rows
def _said_of(
    judgement: Judgement,
    known: Sequence[Identity],
    open_findings: Mapping[Identity, OpenFinding],
) -> list[Finding]:
    """Return what a judgement says of its breaches and of what is open.

    A rule that could not judge at all says one thing of the whole cluster. It goes for every
    subject, so that nothing of it is taken to be gone; what was last known of them is kept.
    """
    if judgement.subjects.kind is judgement.rule.subject:
        return _rows(judgement, known)
    said = judgement.finding(0)
    return [
        replace(said, labels=dict(identity[1]), evidence=open_findings[identity].evidence)
        for identity in known
    ]


def _rows(judgement: Judgement, known: Sequence[Identity]) -> list[Finding]:
    """Return the row view of every breach and of every known subject, in order."""
    positions = set(np.flatnonzero(judgement.verdicts == Verdict.BREACH).tolist())
    if known:
        positions.update(_positions(judgement.subjects, [dict(labels) for _, labels in known]))
    return [judgement.finding(position) for position in sorted(positions)]


def _positions(subjects: Subjects, wanted: Sequence[Labels]) -> list[int]:
    """Return where subjects with these labels are; those that are gone are left out."""
    if isinstance(subjects, PartitionSubjects):
        rows = [_row(subjects.snapshot, labels) for labels in wanted]
        return [row for row in rows if row is not None]
    if isinstance(subjects, CommitSubjects):
        return _commit_positions(subjects, wanted)
    names = {tuple(sorted(labels.items())) for labels in wanted}
    every = (tuple(sorted(subjects.labels(place).items())) for place in range(len(subjects)))
    return [place for place, labels in enumerate(every) if labels in names]


def _row(snapshot: Snapshot, labels: Labels) -> int | None:
    """Return the row of a partition; None where it is gone or the labels are another cluster's."""
    topic, number = labels.get("topic"), labels.get("partition", "")
    if topic is None or not number.isdecimal() or labels.get("cluster") != snapshot.cluster:
        return None
    return snapshot.partitions.index.row(topic, int(number))


def _commit_positions(subjects: CommitSubjects, wanted: Sequence[Labels]) -> list[int]:
    snapshot, commits = subjects.snapshot, subjects.snapshot.commits
    if not len(subjects):
        return []
    group_of = {group.group_id: place for place, group in enumerate(snapshot.groups)}
    width = max(len(snapshot.partitions), 1)
    keys = commits.group[subjects.places] * width + commits.row[subjects.places]
    order = np.argsort(keys, kind="stable")
    pairs = [(group_of.get(labels.get("group", "")), _row(snapshot, labels)) for labels in wanted]
    asked = np.array(
        [group * width + row for group, row in pairs if group is not None and row is not None],
        np.int64,
    )
    found = np.minimum(np.searchsorted(keys, asked, sorter=order), len(keys) - 1)
    positions = order[found]
    hits: list[int] = positions[keys[positions] == asked].tolist()
    return hits
