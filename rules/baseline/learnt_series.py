"""The series of a baseline run by what they are about: groups, or topics.

One thing that is wrong moves all partitions of a group or of a topic, so that rules judge those and not
each series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import (
    METRIC_CODES,
    METRICS,
    OUTCOMES,
    PROFILES,
    BaselineBlock,
    Outcome,
    Profile,
)
from rules.baseline.grid import Int64s
from rules.baseline.naming import GROUP, LABELS
from rules.baseline.series import Metric, Series
from rules.baseline.windows import Bools

NONE: Final = -1  # the number of an absent label
_JUDGED: Final = [OUTCOMES.index(outcome) for outcome in (Outcome.BANDED, Outcome.NO_DATA)]
_DAILY: Final = np.uint8(PROFILES.index(Profile.DAILY))

Int32s = NDArray[np.int32]


def may_open(baselines: BaselineBlock) -> Bools:
    """Mark the series with a band by which something may open."""
    mask: Bools = np.isin(baselines.outcome, _JUDGED)
    return mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesLabels:
    """The labels of n series: numbers of names, NONE where there is none."""

    topic: Int32s
    partition: Int32s
    group: Int32s
    client: Int32s
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    clients: tuple[str, ...]  # client ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearntColumns:
    """The columns of a block that are kept; its bands are 4 kB a series."""

    metric: NDArray[np.uint8]
    profile: NDArray[np.uint8]
    days: Int32s
    has_band: Bools

    @classmethod
    def of(cls, baselines: BaselineBlock) -> LearntColumns:
        """Take them from a block; a profile of a later version counts as one of a day."""
        return cls(
            metric=baselines.metric,
            profile=np.where(baselines.profile < len(PROFILES), baselines.profile, _DAILY),
            days=baselines.days.astype(np.int32),
            has_band=may_open(baselines),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricSeries:
    """The series of a metric that may open, and what they are about."""

    row: Int64s  # of the run's series, ascending
    subject: Int64s  # of each: place in `names`
    names: tuple[str, ...]  # of groups where the metric has groups, else of topics; sorted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearntSeries:
    """The series of a run, in the order of their ids: what a person is told of them beside the band."""

    cluster: str
    zone: str  # of the history
    metric: NDArray[np.uint8]  # places in `METRICS`
    profile: NDArray[np.uint8]  # places in `PROFILES`
    days: Int32s  # that were learnt from
    has_band: Bools  # by which it may open
    labels: SeriesLabels
    _by_metric: dict[Metric, MetricSeries] = field(default_factory=dict)

    @classmethod
    def join(
        cls, cluster: str, zone: str, parts: Sequence[LearntColumns], labels: SeriesLabels
    ) -> LearntSeries:
        """Return the series of parts in the order of their ids, with their labels; at least one part."""
        return cls(
            cluster=cluster,
            zone=zone,
            metric=np.concatenate([part.metric for part in parts]),
            profile=np.concatenate([part.profile for part in parts]),
            days=np.concatenate([part.days for part in parts]),
            has_band=np.concatenate([part.has_band for part in parts]),
            labels=labels,
        )

    def of_metric(self, metric: Metric) -> MetricSeries:
        """Return the series of a metric; those without labels are left out."""
        if metric not in self._by_metric:
            self._by_metric[metric] = self._of_metric(metric)
        return self._by_metric[metric]

    def series(self, row: int) -> Series:
        """Return a series by its row."""
        labels = self.labels
        topic, group = int(labels.topic[row]), int(labels.group[row])
        client = int(labels.client[row])
        partition = int(labels.partition[row])
        return Series(
            cluster=self.cluster,
            metric=METRICS[self.metric[row]],
            topic=None if topic == NONE else labels.topics[topic],
            partition=None if partition == NONE else partition,
            group=None if group == NONE else labels.groups[group],
            client_id=None if client == NONE else labels.clients[client],
        )

    def _of_metric(self, metric: Metric) -> MetricSeries:
        by_group = is_by_group(metric)
        number = self.labels.group if by_group else self.labels.topic
        names = self.labels.groups if by_group else self.labels.topics
        is_mine = (self.metric == METRIC_CODES[metric]) & self.has_band & (number != NONE)
        row = np.flatnonzero(is_mine)
        numbers, subject = np.unique(number[row], return_inverse=True)
        mine = [names[place] for place in numbers.tolist()]
        order = sorted(range(len(mine)), key=mine.__getitem__)
        rank = np.zeros(len(mine), np.int64)
        rank[order] = np.arange(len(mine))
        return MetricSeries(
            row=row, subject=rank[subject.ravel()], names=tuple(mine[place] for place in order)
        )


def is_by_group(metric: Metric) -> bool:
    """Whether a metric is about groups; else about topics."""
    return GROUP in LABELS[metric]
