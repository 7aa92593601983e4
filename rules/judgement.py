"""The judgement of a rule: one verdict per subject as columns, with rows on demand.

A cluster has tens of thousands of subjects and nearly all of them are OK, so that a judgement is
columnar like the facts. `Finding` is its row view: for storage, notifications and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rules.evidence import Evidence
from rules.facts.column import Bools, Column, Int64s, marked
from rules.facts.identity import are_different
from rules.facts.snapshot import Snapshot
from rules.question import Question
from rules.verdict import RuleMeta, Severity, SubjectKind, Verdict

Verdicts = NDArray[np.int8]
Labels = Mapping[str, str]
_SHARED: Final = 16_384  # labels


class Reason(StrEnum):
    """Base of the closed sets of reasons; every rule has its own, with its members' meanings."""


class Subjects(Protocol):
    """The things a rule judges, in a fixed order."""

    @property
    def kind(self) -> SubjectKind:
        """Return the kind of these subjects."""

    def __len__(self) -> int:
        """Return the number of subjects."""

    def labels(self, position: int) -> Labels:
        """Return the labels of one subject; they are its identity."""

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the positions of the subjects with these labels; None for those that are gone."""

    def is_same(self, other: Subjects) -> bool:
        """Whether these subjects have the labels of the other ones, each at the same position."""


def find_by_labels(subjects: Subjects, all_labels: Sequence[Labels]) -> list[int | None]:
    """Return the positions of the subjects with these labels, for a few subjects."""
    place_of = {
        tuple(sorted(subjects.labels(place).items())): place for place in range(len(subjects))
    }
    return [place_of.get(tuple(sorted(labels.items()))) for labels in all_labels]


def find_row(snapshot: Snapshot, labels: Labels) -> int | None:
    """Return the row of a partition; None where it is gone or the labels are of another cluster.

    A topic of the same name that was created since is another one, if topic ids are known.
    """
    topic, number = labels.get("topic"), labels.get("partition", "")
    if topic is None or not number.isdecimal() or labels.get("cluster") != snapshot.cluster:
        return None
    row = snapshot.partitions.index.row(topic, int(number))
    if row is not None and are_different(snapshot.partitions.topic_id(row), labels.get("topic_id")):
        return None
    return row


@lru_cache(maxsize=_SHARED)
def _shared(label: tuple[str, str]) -> tuple[str, str]:
    """Return a label as it was made first: 30,000 findings have few labels that differ."""
    return label


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One subject's verdict with its reason and evidence."""

    rule: RuleMeta
    labels: Labels  # cluster, and what the subject kind adds; values as text
    verdict: Verdict
    reason: str
    evidence: Evidence

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return rule id and sorted labels: what makes two findings the same."""
        return self.rule.rule_id, tuple(map(_shared, sorted(self.labels.items())))

    @property
    def severity(self) -> Severity:
        """Return the severity as a breach."""
        return self.rule.severity_of(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, with a name of its own: several may happen to one subject."""

    position: int | None  # of its subject; None: the subject is gone
    labels: Labels  # of its subject, and what names the event
    reason: Reason
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """One rule's answer about all of its subjects."""

    rule: RuleMeta
    subjects: Subjects
    verdicts: Verdicts  # shape (subjects,)
    reasons: Sequence[Reason]  # the rule's closed set, in the order of `reason`
    reason: NDArray[np.int8]  # position in `reasons`, shape (subjects,)
    evidence: Mapping[str, Column] = field(default_factory=dict)
    # Further evidence of one subject: built only for the subjects that are shown.
    details: Callable[[int], Evidence] | None = None
    questions: tuple[Question, ...] = ()  # for the next round
    # Events with names of their own: the breaches of the columns, and those of subjects that are gone.
    # None: a breach of a subject is its event.
    events: tuple[Event, ...] | None = None

    def count(self, verdict: Verdict) -> int:
        """Return how many subjects have this verdict."""
        return int(np.count_nonzero(self.verdicts == verdict))

    def count_blind(self) -> int:
        """Return how many subjects are UNKNOWN because something was not observed."""
        undecided = [
            place for place, reason in enumerate(self.reasons) if reason in self.rule.undecided
        ]
        is_blind = (self.verdicts == Verdict.UNKNOWN) & ~np.isin(self.reason, undecided)
        return int(np.count_nonzero(is_blind))

    def findings(self, *verdicts: Verdict) -> Iterator[Finding]:
        """Yield the row view of the subjects with these verdicts, in order, and of named events."""
        own = verdicts if self.events is None else [v for v in verdicts if v != Verdict.BREACH]
        for position in np.flatnonzero(np.isin(self.verdicts, own)).tolist():
            yield self.finding(position)
        if Verdict.BREACH in verdicts:
            yield from map(self.event_finding, self.events or ())

    def event_finding(self, event: Event) -> Finding:
        """Return the row view of one event."""
        return Finding(
            rule=self.rule,
            labels=event.labels,
            verdict=Verdict.BREACH,
            reason=str(event.reason),
            evidence=event.evidence,
        )

    def finding(self, position: int) -> Finding:
        """Return the row view of one subject; with several events, of the first, which is the worst."""
        for event in self.events or ():
            if event.position == position:
                return self.event_finding(event)
        return Finding(
            rule=self.rule,
            labels=self.subjects.labels(position),
            verdict=Verdict(int(self.verdicts[position])),
            reason=str(self.reasons[int(self.reason[position])]),
            evidence={
                **{name: column[position] for name, column in self.evidence.items()},
                **(self.details(position) if self.details is not None else {}),
            },
        )


@dataclass(frozen=True, slots=True)
class PartitionSubjects:
    """All partitions of a snapshot."""

    snapshot: Snapshot
    kind: SubjectKind = SubjectKind.PARTITION

    def __len__(self) -> int:
        return len(self.snapshot.partitions)

    def labels(self, position: int) -> Labels:
        """Return cluster, topic and partition."""
        name = self.snapshot.partitions.index.topic_partition(position)
        return {
            "cluster": self.snapshot.cluster,
            "topic": name.topic,
            "partition": str(name.partition),
        }

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the rows of these partitions."""
        return [find_row(self.snapshot, labels) for labels in all_labels]

    def is_same(self, other: Subjects) -> bool:
        """Whether the partitions are those of the other ones."""
        if not isinstance(other, PartitionSubjects):
            return False
        return are_same_partitions(self.snapshot, other.snapshot)


@dataclass(frozen=True, slots=True, eq=False)
class CommitSubjects:
    """(group, partition) pairs with a commit; `places` are positions in the snapshot's commits."""

    snapshot: Snapshot
    places: Int64s
    kind: SubjectKind = SubjectKind.COMMIT

    @classmethod
    def all_of(cls, snapshot: Snapshot) -> CommitSubjects:
        """Take every commit."""
        return cls(snapshot, np.arange(len(snapshot.commits), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.places)

    def labels(self, position: int) -> Labels:
        """Return cluster, group, topic and partition."""
        commits, place = self.snapshot.commits, int(self.places[position])
        name = self.snapshot.partitions.index.topic_partition(int(commits.row[place]))
        return {
            "cluster": self.snapshot.cluster,
            "group": self.snapshot.groups[int(commits.group[place])].group_id,
            "topic": name.topic,
            "partition": str(name.partition),
        }

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the positions of these commits."""
        snapshot, commits = self.snapshot, self.snapshot.commits
        if not len(self):
            return [None] * len(all_labels)
        group_of = {group.group_id: place for place, group in enumerate(snapshot.groups)}
        width = max(len(snapshot.partitions), 1)
        keys = commits.group[self.places] * width + commits.row[self.places]
        order = np.argsort(keys, kind="stable")
        pairs = [
            (group_of.get(labels.get("group", "")), find_row(snapshot, labels))
            for labels in all_labels
        ]
        keys_of_commits = np.array(
            [-1 if group is None or row is None else group * width + row for group, row in pairs],
            np.int64,
        )
        places = np.minimum(np.searchsorted(keys, keys_of_commits, sorter=order), len(keys) - 1)
        positions = order[places]
        hits = keys[positions] == keys_of_commits
        return [
            place if is_hit else None
            for place, is_hit in zip(positions.tolist(), hits.tolist(), strict=True)
        ]

    def is_same(self, other: Subjects) -> bool:
        """Whether the commits are those of the other ones."""
        return (
            isinstance(other, CommitSubjects)
            and are_same_partitions(self.snapshot, other.snapshot)
            and _names(self.snapshot) == _names(other.snapshot)
            and np.array_equal(_pairs(self), _pairs(other))
        )


@dataclass(frozen=True, slots=True, eq=False)
class GroupSubjects:
    """Groups; `places` are positions in the snapshot's groups."""

    snapshot: Snapshot
    places: Int64s
    kind: SubjectKind = SubjectKind.GROUP

    def __len__(self) -> int:
        return len(self.places)

    def labels(self, position: int) -> Labels:
        """Return cluster and group."""
        group = self.snapshot.groups[int(self.places[position])]
        return {"cluster": self.snapshot.cluster, "group": group.group_id}

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the positions of these groups."""
        return find_by_labels(self, all_labels)

    def is_same(self, other: Subjects) -> bool:
        """Whether the groups are those of the other ones."""
        return (
            isinstance(other, GroupSubjects)
            and self.snapshot.cluster == other.snapshot.cluster
            and _names(self.snapshot) == _names(other.snapshot)
            and np.array_equal(self.places, other.places)
        )


@dataclass(frozen=True, slots=True)
class NamedSubjects:
    """A few subjects whose labels are given: the cluster itself, or rules."""

    kind: SubjectKind
    all_labels: tuple[Labels, ...]

    def __len__(self) -> int:
        return len(self.all_labels)

    def labels(self, position: int) -> Labels:
        """Return the labels that were given."""
        return self.all_labels[position]

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the positions of these subjects."""
        return find_by_labels(self, all_labels)

    def is_same(self, other: Subjects) -> bool:
        """Whether the labels are those of the other ones."""
        return isinstance(other, NamedSubjects) and self.all_labels == other.all_labels


def are_same_partitions(snapshot: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots have the same partitions of the same topics in the same rows."""
    mine, theirs = snapshot.partitions, other.partitions
    if snapshot.cluster != other.cluster:
        return False
    return mine is theirs or (
        mine.index.topics == theirs.index.topics
        and mine.topic_ids == theirs.topic_ids
        and np.array_equal(mine.index.starts, theirs.index.starts)
    )


def _pairs(subjects: CommitSubjects) -> Int64s:
    commits, places = subjects.snapshot.commits, subjects.places
    return np.stack([commits.group[places], commits.row[places]])


def _names(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(group.group_id for group in snapshot.groups)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Where `mask` holds, this verdict for this reason."""

    mask: Bools
    verdict: Verdict
    reason: Reason


def decide(  # noqa: PLR0913 - the verdicts, with their evidence and the questions beside them
    rule: RuleMeta,
    subjects: Subjects,
    cases: Sequence[Case],
    otherwise: tuple[Verdict, Reason],
    evidence: Mapping[str, Column] | None = None,
    *,
    details: Callable[[int], Evidence] | None = None,
    questions: tuple[Question, ...] = (),
    events: Sequence[Event] | None = None,
    reasons: Sequence[Reason] | None = None,
) -> Judgement:
    """Judge every subject by the first case that holds for it, read from the top.

    `reasons` is the closed set, by default all of the kind of the last one. Before all cases, subjects
    with `events` are breaches for the reason of the first of them.
    """
    cases = [*_cases_of(events or (), len(subjects)), *cases]
    verdict, last = otherwise
    reasons = tuple(type(last)) if reasons is None else reasons
    place = {reason: number for number, reason in enumerate(reasons)}
    masks = [case.mask for case in cases]
    verdicts = np.full(len(subjects), int(verdict), np.int8)
    reason = np.full(len(subjects), place[last], np.int8)
    if masks:
        verdicts = np.select(masks, [np.int8(case.verdict) for case in cases], verdicts)
        reason = np.select(masks, [np.int8(place[case.reason]) for case in cases], reason)
    return Judgement(
        rule=rule,
        subjects=subjects,
        verdicts=verdicts.astype(np.int8),
        reasons=reasons,
        reason=reason.astype(np.int8),
        evidence=evidence or {},
        details=details,
        questions=questions,
        events=None if events is None else tuple(events),
    )


def decide_cluster(rule: RuleMeta, cluster: str, why: Reason) -> Judgement:
    """Judge nothing: one UNKNOWN for the whole cluster."""
    subject = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": cluster},))
    return decide(rule, subject, [], (Verdict.UNKNOWN, why))


def _cases_of(events: Sequence[Event], subjects: int) -> Iterator[Case]:
    by_reason: dict[Reason, list[int]] = {}
    for event in events:
        if event.position is not None:
            by_reason.setdefault(event.reason, []).append(event.position)
    for reason, positions in by_reason.items():
        yield Case(marked(subjects, positions), Verdict.BREACH, reason)
