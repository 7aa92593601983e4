"""What the rules on unusual values share: one judgement per group or topic from the series that are scored live.

Nothing is scored here. What is open comes from the rounds before, one polling interval late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, cast

import numpy as np

from rules.baseline.blocks import METRIC_CODES
from rules.baseline.learnt_series import NONE, LearntSeries, MetricSeries, is_by_group
from rules.baseline.live_series import UNKNOWN_REASONS, StepVerdict, UnknownReason
from rules.baseline.open_series import TOGETHER_MS
from rules.baseline.series import Metric, Series, series_ids, text_head, text_tail
from rules.baseline.unusual_explanation import SHOWN, OpenRow, explain, explain_many, row_of
from rules.baseline.unusual_values import ScoringState, UnusualValues
from rules.evidence import Evidence, Scalar
from rules.facts.column import Bools, Column, Int64s
from rules.facts.snapshot import Snapshot
from rules.judgement import (
    Case,
    Judgement,
    Labels,
    Reason,
    Subjects,
    decide,
    decide_cluster,
    find_row,
)
from rules.owners import owner_evidence
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

# What opens together is one finding before an alert on one of its parts could fire.
HELD_FOR: Final = timedelta(milliseconds=TOGETHER_MS)


class UnusualReason(Reason):
    """The reasons of all rules on unusual values."""


_REASONS: Final = {
    "UNUSUAL": "unusual",
    "MANY_UNUSUAL": "many_unusual",  # of the cluster: more than ten opened together
    "NOT_SCORED": "not_scored",  # baselines are being loaded, or the last scores are too old
    "NOT_MEASURED": "not_measured",
    "NOT_LEARNT": "not_learnt",  # the band knows nothing of this half hour
    "SHORT_HISTORY": "short_history",  # far out, with less than half of an hour known before it
    "ONE_OF_MANY": "one_of_many",  # unusual too, and in the finding of the cluster
    "USUAL": "usual",
}
_UNKNOWN: Final = {
    UnknownReason.NOT_MEASURED: "NOT_MEASURED",
    UnknownReason.NOT_LEARNT: "NOT_LEARNT",
    UnknownReason.SHORT_HISTORY: "SHORT_HISTORY",
}


def reasons_of(module: str) -> type[Reason]:
    """Return the closed set of reasons of a rule of this kind, as one of its own module."""
    make = cast(
        "Callable[..., type[Reason]]", UnusualReason
    )  # an enumeration is called with its members
    return make("Why", _REASONS, module=module)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusualRule:
    """A rule on unusual values of a metric."""

    meta: RuleMeta
    metric: Metric
    noun: str  # what the value is, in a sentence

    @classmethod
    def of(cls, rule_id: str, metric: Metric, *, noun: str, summary: str) -> UnusualRule:
        """Declare a rule: it informs, and never pages by itself."""
        meta = RuleMeta(
            rule_id=rule_id,
            subject=SubjectKind.GROUP if is_by_group(metric) else SubjectKind.TOPIC,
            kind=Kind.STATE,
            severity=Severity.INFO,
            for_=HELD_FOR,
            summary=summary,
        )
        return cls(meta=meta, metric=metric, noun=noun)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Subjects:
    """Groups or topics by name, and behind them the cluster, for what is one of many."""

    cluster: str
    kind: SubjectKind
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names) + 1

    def labels(self, position: int) -> Labels:
        """Return the labels of a group or topic, or of the cluster."""
        if position == len(self.names):
            return {"cluster": self.cluster}
        return {"cluster": self.cluster, str(self.kind): self.names[position]}

    def find(self, all_labels: Sequence[Labels]) -> list[int | None]:
        """Return the positions of these subjects."""
        place: dict[str | None, int] = {name: number for number, name in enumerate(self.names)}
        place[None] = len(self.names)
        return [place.get(labels.get(str(self.kind))) for labels in all_labels]

    def is_same(self, other: Subjects) -> bool:
        """Whether the names are those of the other ones."""
        return isinstance(other, _Subjects) and (self.cluster, self.kind, self.names) == (
            other.cluster,
            other.kind,
            other.names,
        )


def judge_unusual(rule: UnusualRule, why: type[Reason], view: View) -> Judgement:
    """Judge every group or topic that has a band for the metric, and exists."""
    cluster, unusual = view.snapshot.cluster, view.unusual
    step = unusual.step
    if unusual.state is ScoringState.OFF:
        nothing = _Subjects(cluster=cluster, kind=rule.meta.subject, names=())
        return decide(rule.meta, nothing, [], (Verdict.OK, why["USUAL"]))
    if step is None or step.day.learnt is None or not unusual.is_current(view.now):
        return decide_cluster(rule.meta, cluster, why["NOT_SCORED"])
    learnt = step.day.learnt
    series = learnt.of_metric(rule.metric)
    scored = _Scored.of(unusual, step, series)
    is_there = _exist(view.snapshot, rule.meta.subject, series.names)
    places = np.flatnonzero(is_there)
    names = series.names if is_there.all() else tuple(series.names[place] for place in places)
    explained = _Explained(view.snapshot, rule, learnt, unusual, scored, places)
    return decide(
        rule.meta,
        _Subjects(cluster=cluster, kind=rule.meta.subject, names=names),
        _cases(scored, why, places),
        (Verdict.OK, why["USUAL"]),
        {"series_count": Column.known(scored.counts(places))},
        details=explained.details,
    )


def were_unusual(
    view: View, metric: Metric, places: Int64s, chosen: Bools, *, within: timedelta
) -> Bools:
    """Mark, of the groups that `chosen` marks, those of which a partition's series was open within a time.

    `places` are positions in the snapshot's groups.
    """
    unusual = view.unusual
    mask = np.zeros(len(places), np.bool_)
    ids = unusual.unusual_within(within, view.now)
    if not len(ids) or not chosen.any():
        return mask
    group_ids, others = _groups_of(unusual.step, metric, ids)
    for position in np.flatnonzero(chosen).tolist():
        place = int(places[position])
        is_known = view.snapshot.groups[place].group_id in group_ids
        mask[position] = is_known or _has_series(view.snapshot, metric, place, others)
    return mask


def _groups_of(step: StepVerdict | None, metric: Metric, ids: Int64s) -> tuple[set[str], Int64s]:
    """Return the groups of the series of a metric with these ids, and the ids that the step does not know."""
    learnt = None if step is None else step.day.learnt
    if step is None or learnt is None:
        return set(), ids
    rows, has_row = step.day.find(ids)
    mine = rows[has_row]
    numbers = np.unique(learnt.labels.group[mine[learnt.metric[mine] == METRIC_CODES[metric]]])
    names = learnt.labels.groups
    return {names[number] for number in numbers.tolist() if number != NONE}, ids[~has_row]


def _has_series(snapshot: Snapshot, metric: Metric, place: int, ids: Int64s) -> bool:
    """Whether a group's series on one of its partitions is among ids: a restart knows no more than those."""
    if not len(ids):
        return False
    index, commits = snapshot.partitions.index, snapshot.commits
    group_id, head = snapshot.groups[place].group_id, text_head(snapshot.cluster, metric)
    rows = commits.row[commits.group == place]
    names = (index.topic_partition(row) for row in rows.tolist())
    texts = [head + text_tail(name.topic, name.partition, group_id) for name in names]
    return bool(np.isin(series_ids(texts), ids).any())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """The open series of a metric, and what is unknown of its subjects."""

    series: MetricSeries
    unknown: Int64s  # of each series of the metric: places in `UNKNOWN_REASONS`
    place: Int64s  # of the open series among those of the metric
    in_open: Int64s  # the same: their places in `OpenSeries`
    is_known: Bools  # the same: measured, and its half hour is learnt
    is_many: Bools  # the same

    @classmethod
    def of(cls, unusual: UnusualValues, step: StepVerdict, series: MetricSeries) -> _Scored:
        """Find the open series of the metric."""
        rows, has_row = step.day.find(unusual.open.series_id)
        in_open, place = np.flatnonzero(has_row), np.zeros(0, np.int64)
        if len(series.row):
            place = np.searchsorted(series.row, rows[in_open]).clip(max=len(series.row) - 1)
            is_mine = series.row[place] == rows[in_open]
            in_open, place = in_open[is_mine], place[is_mine]
        else:
            in_open = in_open[:0]
        return cls(
            series=series,
            unknown=step.unknown[series.row].astype(np.int64),
            place=place,
            in_open=in_open,
            is_known=step.is_known(series.row[place]),
            is_many=unusual.open.many_ms[in_open] > 0,
        )

    @property
    def of_open(self) -> Int64s:
        """Return the subject of each open series."""
        return self.series.subject[self.place]

    def has(self, mask: Bools) -> Bools:
        """Mark the subjects that have one of the marked open series."""
        return np.bincount(self.of_open[mask], minlength=len(self.series.names)) > 0

    def counts(self, places: Int64s) -> Int64s:
        """Return how many series are open: of each subject, and of all that are many."""
        counts = np.bincount(self.of_open, minlength=len(self.series.names))
        return np.append(counts[places], np.count_nonzero(self.is_many)).astype(np.int64)

    def all_unknown(self, reason: UnknownReason) -> Bools:
        """Mark the subjects of which nothing is known, and of one of whose series for this reason."""
        subjects = len(self.series.names)
        known = np.bincount(self.series.subject[self.unknown == 0], minlength=subjects)
        code = UNKNOWN_REASONS.index(reason)
        unknown = np.bincount(self.series.subject[self.unknown == code], minlength=subjects)
        mask: Bools = (known == 0) & (unknown > 0)
        return mask


def _cases(scored: _Scored, why: type[Reason], places: Int64s) -> list[Case]:
    def with_cluster(mask: Bools, *, cluster: bool = False) -> Bools:
        return np.append(mask[places], cluster)

    nobody = np.zeros(len(scored.series.names), np.bool_)
    in_many = scored.has(scored.is_many & scored.is_known)
    is_open = scored.has(np.ones(len(scored.place), np.bool_))
    known_many = bool((scored.is_known & scored.is_many).any())
    unknown_many = bool(scored.is_many.any()) and not known_many
    cases = [
        Case(with_cluster(nobody, cluster=known_many), Verdict.BREACH, why["MANY_UNUSUAL"]),
        Case(with_cluster(nobody, cluster=unknown_many), Verdict.UNKNOWN, why["NOT_MEASURED"]),
        Case(with_cluster(in_many), Verdict.OK, why["ONE_OF_MANY"]),
        Case(with_cluster(scored.has(scored.is_known)), Verdict.BREACH, why["UNUSUAL"]),
    ]
    for reason, name in _UNKNOWN.items():
        code = UNKNOWN_REASONS.index(reason)
        is_mine = ~scored.is_known & (scored.unknown[scored.place] == code)
        # Of what is open one unknown series is enough: its absence ends nothing.
        mask = scored.has(is_mine) | (scored.all_unknown(reason) & ~is_open)
        cases.append(Case(with_cluster(mask), Verdict.UNKNOWN, why[name]))
    return cases


def _exist(snapshot: Snapshot, kind: SubjectKind, names: tuple[str, ...]) -> Bools:
    """Mark the groups or topics that exist, or may: an incomplete list proves no absence."""
    if kind is SubjectKind.TOPIC:
        if not snapshot.placement_complete:
            return np.ones(len(names), np.bool_)
        topics = snapshot.partitions.index.position_of_topic
        return np.array([name in topics for name in names], np.bool_)
    if not snapshot.commits_complete:
        return np.ones(len(names), np.bool_)
    groups = {group.group_id for group in snapshot.groups} | snapshot.groups_without_commits
    return np.array([name in groups for name in names], np.bool_)


def owner_of_series(snapshot: Snapshot, series: Series) -> dict[str, Scalar]:
    """Return the owner of a group's partition as evidence; nothing for series of other kinds."""
    if series.group is None or series.topic is None or series.partition is None:
        return {}
    labels = {"topic": series.topic, "partition": str(series.partition)}
    row = find_row(snapshot, {"cluster": snapshot.cluster, **labels})
    names = (place for place, g in enumerate(snapshot.groups) if g.group_id == series.group)
    place = next(names, None)
    return {} if row is None or place is None else owner_evidence(snapshot, place, row)


@dataclass(slots=True, eq=False)
class _Explained:
    """The evidence of subjects, made for those that are shown."""

    snapshot: Snapshot
    rule: UnusualRule
    learnt: LearntSeries
    unusual: UnusualValues
    scored: _Scored
    places: Int64s
    _rows: dict[int, list[OpenRow]] = field(default_factory=dict)

    def details(self, position: int) -> Evidence:
        """Return the worst series of a subject and a sentence on the first of them."""
        is_cluster = position == len(self.places)
        scored = self.scored
        mask = scored.is_many if is_cluster else scored.of_open == self.places[position]
        step = self.unusual.step
        if step is None or not mask.any():
            return {}
        rows = scored.series.row[scored.place[mask]]
        in_open = scored.in_open[mask]
        severity = np.nan_to_num(step.verdict.scores.seasonal[rows, 0], nan=-1.0)
        first = np.argsort(-severity, kind="stable")[:SHOWN]
        shown = [
            row_of(self.unusual, step, self.learnt, int(rows[place]), int(in_open[place]))
            for place in first.tolist()
        ]
        subjects = len(np.unique(scored.of_open[mask]))
        sentence = explain(self.rule.noun, shown[0], len(rows) - 1)
        if is_cluster:
            kind = f"{self.rule.meta.subject}s"
            sentence = explain_many(subjects, kind, sentence)
        series = [
            {**row.to_evidence(), **owner_of_series(self.snapshot, row.series)} for row in shown
        ]
        return {"explanation": sentence, "series": series}
