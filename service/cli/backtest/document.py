"""A backtest as JSON, which the table and the page are drawn from; times are UTC in ISO 8601."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from rules.baseline.blocks import Profile
from rules.baseline.event_scores import EventScores
from rules.baseline.naming import name_of
from rules.baseline.replaying import BacktestOpening
from rules.baseline.wording import TIMES, half_hour
from rules.catalogue.all_rules import METRIC_OF_RULE
from rules.facts.times import EPOCH
from service.cli.baselines.words import amount, number, sentence
from service.jobs.backtest.planning import BacktestPlan
from service.jobs.backtest.results import MetricTotals, ReplayResult, only_in
from service.jobs.backtest.running import Backtest
from service.terminal.words import json_time

RULE_OF_METRIC: Final = {str(metric): rule for rule, metric in METRIC_OF_RULE.items()}
MILLISECOND: Final = timedelta(milliseconds=1)


def document(backtest: Backtest) -> dict[str, Any]:
    """Return a backtest as JSON."""
    order, results = backtest.plan.order, backtest.results
    shown: dict[str, Any] = {
        "cluster": backtest.plan.folder.described.cluster,
        "time_zone": order.zone,
        "from": order.from_day.isoformat(),
        "to": order.to_day.isoformat(),
        "days": (order.to_day - order.from_day).days + 1,
        "learnt_from": order.first_day.isoformat(),
        "results": [_result(result, backtest.plan) for result in results],
        "not_folded": [day.isoformat() for day in backtest.plan.not_folded],
        "unnamed": list(backtest.plan.labels.unreadable),
        "damaged": [
            {"day": damage.day.isoformat(), "bucket": damage.bucket, "why": damage.why}
            for damage in backtest.damaged
        ],
    }
    if len(results) > 1:
        now, changed = results
        shown["only_now"] = _openings(only_in(now, changed), backtest.plan)
        shown["only_changed"] = _openings(only_in(changed, now), backtest.plan)
    return shown


def _result(result: ReplayResult, plan: BacktestPlan) -> dict[str, Any]:
    return {
        "settings": list(result.changes),
        "total": _totals(result.total),
        "metrics": [_totals(metric) for metric in result.metrics],
        "labels": None if result.scores is None else _scores(result.scores),
        "openings": _openings(result.openings, plan),
    }


def _totals(totals: MetricTotals) -> dict[str, Any]:
    return {
        "metric": totals.metric,
        "rule": RULE_OF_METRIC.get(totals.metric),
        "openings": totals.openings,
        "series": totals.series,
        "series_days": totals.series_days,
        "openings_per_series_week": totals.per_series_week,
    }


def _scores(scores: EventScores) -> dict[str, Any]:
    delay = scores.median_delay_ms
    return {
        "incidents": scores.incidents,
        "found": scores.found,
        "false_openings": scores.false,
        "repeated_openings": scores.repeated,
        "precision": scores.precision,
        "recall": scores.recall,
        "event_f1": scores.f1,
        "median_delay_seconds": None if delay is None else delay / 1000,
    }


def _openings(openings: Sequence[BacktestOpening], plan: BacktestPlan) -> list[dict[str, Any]]:
    return [_opening(opening, plan) for opening in openings]


def _opening(opening: BacktestOpening, plan: BacktestPlan) -> dict[str, Any]:
    series = plan.name_series(opening.series_id)
    usual = _usual(opening, plan.order.zone)
    return {
        "series": str(opening.series_id) if series is None else name_of(series),
        "series_id": str(opening.series_id),
        "metric": opening.metric,
        "topic": None if series is None else series.topic,
        "partition": None if series is None else series.partition,
        "group": None if series is None else series.group,
        "opened_at": json_time(_time(opening.opened_ms)),
        "closed_at": None if opening.closed_ms is None else json_time(_time(opening.closed_ms)),
        "worst_at": json_time(_time(opening.worst_ms)),
        "score": opening.score,
        "value": opening.value,
        "usual": usual,
        "days": opening.days,
        "explanation": _explanation(opening, usual),
    }


def _usual(opening: BacktestOpening, zone: str) -> dict[str, Any]:
    """Return what was usual at the worst sample, as `baselines show` has it."""
    weekday, begins, ends = half_hour(_time(opening.worst_ms), zone)
    return {
        "weekday": weekday if opening.profile == Profile.WEEKLY else None,
        "begins": begins,
        "ends": ends,
        "expected": opening.expected,
        "least": opening.least,
        "most": opening.most,
    }


def _explanation(opening: BacktestOpening, usual: dict[str, Any]) -> str:
    value = amount(opening.value, opening.metric)
    series = {"usual": usual, "metric": opening.metric, "days": opening.days}
    return f"{value}; {sentence(series)}; {number(opening.score)} {TIMES} the usual deviation"


def _time(at_ms: int) -> datetime:
    return EPOCH + MILLISECOND * at_ms
