"""Producers of a topic fail to send more records than is usual for this time.

Detects:
    Topics whose producers report unusually many failed records for this half hour of the day or week.

Why it matters:
    Where some errors are usual, a fixed limit is too low or too high. More of them than usual are records
    that are not in Kafka.

Inputs:
    `record-error-rate` of the topic's producers, from their own endpoints or from Prometheus (settings
    `scrapes`). The band of the
    series of the baseline run in force (docs/baselines.md); without one nothing is judged. It is scored by
    the rounds before: a finding opens and ends a polling interval or two late. What is not measured is
    UNKNOWN: it opens nothing, and what is open stays open. A series that the run in force has no band for ends.

Thresholds:
    Every known value for five minutes is beyond the series' own threshold, three or more usual deviations
    away from what is expected and from the hour before; or, for half an hour, slowly. A deviation of less
    than 0.1/s and 20 % of what is expected never opens. It ends after ten calm
    minutes. If more than ten topics become unusual within three minutes, they and what follows within
    ten minutes are one finding of the cluster.

False positives:
    Retries for some minutes during a restart of brokers. Topics without errors in most of the time have no
    wide band: the least deviation decides, and rule record_error_rate_high has a limit for every rate.
    How often it would have fired last month: `tidemark backtest --rule record_error_rate_unusual`.

Runbook:
    The producers' logs have the cause, as for rule record_error_rate_high. Find out what the application did
    with those records, and send them again.
"""

from __future__ import annotations

from typing import Final

from rules.baseline.series import Metric
from rules.judgement import Judgement
from rules.unusual import UnusualRule, judge_unusual, reasons_of
from rules.view import View

UNUSUAL: Final = UnusualRule.of(
    "record_error_rate_unusual",
    Metric.RECORD_ERROR_RATE,
    noun="record error rate",
    summary="Producers of a topic fail to send more records than is usual for this time.",
)
RULE: Final = UNUSUAL.meta
Why: Final = reasons_of(__name__)


def judge(view: View) -> Judgement:
    """Judge every topic that has a band."""
    return judge_unusual(UNUSUAL, Why, view)
