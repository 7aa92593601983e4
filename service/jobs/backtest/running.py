"""Runs a backtest: Spark replays, the results are put together. Nothing of history is changed, and nothing locked."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.baseline.civil import civil_day
from rules.baseline.event_scores import Span
from service.history.labels import read_windows
from service.jobs.backtest.planning import BacktestPlan, BacktestRequest
from service.jobs.backtest.results import Collected, DamagedDay, ReplayResult
from service.jobs.baseline_run.reporting import Reporter
from service.jobs.baseline_run.spark_process import SparkOrder, run_job

MODULE: Final = "spark.jobs.backtest"
ORDER: Final = "backtest.json"  # in the folder of the run
SCRATCH: Final = "tidemark-backtest-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What a backtest came to."""

    plan: BacktestPlan
    results: Sequence[ReplayResult]  # one per settings, in the request's order
    damaged: Sequence[DamagedDay]


def run_backtest(request: BacktestRequest, plan: BacktestPlan, report: Reporter) -> Backtest:
    """Replay what was planned; `report` gets the events of progress.

    Raises:
        StoreError: labels cannot be read.
        BaselineRunError: Spark failed, was broken off, or a file cannot be read now.
    """
    labels = _labels(plan)
    collected = Collected()
    with tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        (scratch / ORDER).write_text(plan.order.to_json(), encoding="utf-8")
        for event in run_job(_spark_order(request, scratch), request.environment):
            if event["event"] == "replayed":
                collected.add(event)
            else:
                report(event)
    period = _period(plan)
    return Backtest(
        plan=plan,
        results=[
            collected.result(place, changes, labels, period)
            for place, changes in enumerate(plan.order.settings)
        ],
        damaged=sorted(collected.damaged, key=lambda damage: (damage.day, damage.bucket)),
    )


def _spark_order(request: BacktestRequest, scratch: Path) -> SparkOrder:
    return SparkOrder(
        master=request.master,
        conf=request.conf,
        arguments=[ORDER],
        scratch=scratch,
        timeout_seconds=request.timeout_seconds,
        module=MODULE,
    )


def _period(plan: BacktestPlan) -> Span:
    order = plan.order
    first, last = (civil_day(day, order.zone) for day in (order.from_day, order.to_day))
    return first.start_ms, last.end_ms


def _labels(plan: BacktestPlan) -> Mapping[int, Sequence[Span]]:
    """Return the labelled windows of the series that are replayed, of all days that are read."""
    order = plan.order
    chosen = None if order.series is None else set(order.series)
    windows: dict[int, list[Span]] = defaultdict(list)
    for day in order.days:
        for series, begin, end in read_windows(plan.folder, day).tolist():
            if (chosen is None or series in chosen) and _has_metric(plan, series):
                windows[series].append((begin, end))
    return windows


def _has_metric(plan: BacktestPlan, series_id: int) -> bool:
    if not plan.order.metrics:
        return True
    series = plan.name_series(series_id)
    return series is not None and series.metric.value in plan.order.metrics
