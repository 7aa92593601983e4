"""What an exporter of others exposes, and which of our columns each of its metrics shows.

Names, labels and types are the exporter's; help texts are ours. A value that is not known has no
sample, and neither has a sum of which a part is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.names import Metric, Unit
from rules.time_lag import TimeLags
from service.metrics.dropin.subjects import Subjects
from service.metrics.lines import Values
from service.metrics.totals import SelfMetrics


class Subject(StrEnum):
    """What a series is about."""

    PARTITION = "partition"
    TOPIC = "topic"
    COMMIT = "commit"  # of a group on a partition
    GROUP_TOPIC = "group_topic"  # all commits of a group on a topic
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedRound:
    """What a page is made from."""

    snapshot: Snapshot
    totals: SelfMetrics
    lags: TimeLags | None
    subjects: Subjects


ColumnOf = Callable[[ObservedRound], Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric with a column of values: a row per partition, topic, commit or group of the snapshot."""

    metric: Metric
    subject: Subject
    column: ColumnOf
    native: str  # how Tidemark's own metrics say the same, in PromQL
    steps: int = 1  # of the column that make one of the metric's unit


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNames:
    """How an exporter calls the labels of its series."""

    topic: str
    partition: str
    group: str
    cluster: str | None = None  # None: it shows one cluster and does not name it

    def of(self, subject: Subject) -> tuple[str, ...]:
        """Return the labels of a series about `subject`."""
        names = {
            Subject.PARTITION: (self.topic, self.partition),
            Subject.TOPIC: (self.topic,),
            Subject.COMMIT: (self.group, self.topic, self.partition),
            Subject.GROUP_TOPIC: (self.group, self.topic),
            Subject.GROUP: (self.group,),
        }[subject]
        return names if self.cluster is None else (self.cluster, *names)

    def family(  # noqa: PLR0913 - the fields of a table, each by its name
        self,
        subject: Subject,
        name: str,
        unit: Unit,
        text: str,
        *,
        column: ColumnOf,
        native: str,
        steps: int = 1,
    ) -> Family:
        """Return a metric whose labels are those of its subject."""
        metric = Metric(name=name, help=text, unit=unit, labels=self.of(subject))
        return Family(metric=metric, subject=subject, column=column, native=native, steps=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """One metric whose few series have labels of their own."""

    metric: Metric
    values: Callable[[ObservedRound], Values]
    native: str
    # Its values while the cluster cannot be queried; None: it has none then.
    blind: Callable[[SelfMetrics], Values] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exporter:
    """The metrics of one exporter."""

    name: str  # the last part of the path of its page
    labels: LabelNames
    families: tuple[Family, ...]
    singles: tuple[Single, ...]
    # What it has and we do not know: name -> why; a name may end with `*`.
    missing: Mapping[str, str]
    # Labels that its series have and ours do not: name -> why.
    missing_labels: Mapping[str, str]

    @property
    def entries(self) -> tuple[Family | Single, ...]:
        """Return every metric that a page may have, with where its values come from."""
        return (*self.families, *self.singles)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return every metric that a page may have."""
        return tuple(entry.metric for entry in self.entries)
