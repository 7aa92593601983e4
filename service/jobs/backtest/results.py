"""What came of a backtest: openings, totals by metric, scores by labels, and what two settings differ in. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from rules.baseline.event_scores import EventScores, Span, score_events
from rules.baseline.replaying import BacktestOpening
from service.jobs.baseline_run.reporting import JsonObject

DAYS_PER_WEEK: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTotals:
    """How often series of a metric would have opened."""

    metric: str
    openings: int
    series: int  # that had a band and samples on at least one day
    series_days: int

    @property
    def per_series_week(self) -> float | None:
        """Return the openings of a series in a week; None: nothing was judged."""
        weeks = self.series_days / DAYS_PER_WEEK
        return self.openings / weeks if weeks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What would have opened with one of the settings."""

    changes: Sequence[str]  # of the settings; none: those that are in force
    openings: Sequence[BacktestOpening]  # by time
    metrics: Sequence[MetricTotals]
    earlier: Sequence[BacktestOpening]  # that were open already when the time began
    scores: EventScores | None  # None: no series that was replayed has a label

    @property
    def total(self) -> MetricTotals:
        """Return the totals of all metrics."""
        return MetricTotals(
            metric="all",
            openings=len(self.openings),
            series=sum(metric.series for metric in self.metrics),
            series_days=sum(metric.series_days for metric in self.metrics),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedDay:
    """A bucket's day that counted as one without data."""

    day: date
    bucket: int
    why: str


@dataclass(slots=True)
class Collected:
    """Takes the events of the job."""

    openings: dict[int, list[BacktestOpening]] = field(default_factory=lambda: defaultdict(list))
    earlier: dict[int, list[BacktestOpening]] = field(default_factory=lambda: defaultdict(list))
    totals: dict[tuple[int, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )
    damaged: set[DamagedDay] = field(default_factory=set)

    def add(self, event: JsonObject) -> None:
        """Add a bucket's replay, as `spark.backtest.bucket.ReplayedBucket` has it."""
        setting = int(event["setting"])
        self.openings[setting] += [BacktestOpening(**opening) for opening in event["openings"]]
        self.earlier[setting] += [BacktestOpening(**opening) for opening in event["earlier"]]
        for metric, totals in event["totals"].items():
            sums = self.totals[setting, metric]
            sums[0] += totals["series"]
            sums[1] += totals["series_days"]
        for day, why in event["damaged"].items():
            damage = DamagedDay(day=date.fromisoformat(day), bucket=event["bucket"], why=why)
            self.damaged.add(damage)

    def result(
        self,
        setting: int,
        changes: Sequence[str],
        labels: Mapping[int, Sequence[Span]],
        period: Span,
    ) -> ReplayResult:
        """Return what one of the settings came to; `labels` are windows of the replayed series."""
        openings = sorted(
            self.openings[setting], key=lambda opening: (opening.opened_ms, opening.series_id)
        )
        counts: dict[str, int] = defaultdict(int)
        times: dict[int, list[int]] = defaultdict(list)
        for opening in openings:
            counts[opening.metric] += 1
            times[opening.series_id].append(opening.opened_ms)
        metrics = [
            MetricTotals(metric=metric, openings=counts[metric], series=series, series_days=days)
            for (place, metric), (series, days) in sorted(self.totals.items())
            if place == setting
        ]
        scores = score_events(times, labels, period) if labels else None
        return ReplayResult(
            changes=changes,
            openings=openings,
            metrics=metrics,
            earlier=self.earlier[setting],
            scores=scores,
        )


def only_in(result: ReplayResult, other: ReplayResult) -> list[BacktestOpening]:
    """Return the openings that overlap with none of the same series in the other result."""
    by_series: dict[int, list[BacktestOpening]] = defaultdict(list)
    for opening in (*other.openings, *other.earlier):
        by_series[opening.series_id].append(opening)
    return [
        opening
        for opening in result.openings
        if not _overlaps(opening, by_series.get(opening.series_id, ()))
    ]


def _overlaps(opening: BacktestOpening, others: Iterable[BacktestOpening]) -> bool:
    return any(
        (other.closed_ms is None or opening.opened_ms <= other.closed_ms)
        and (opening.closed_ms is None or other.opened_ms <= opening.closed_ms)
        for other in others
    )
