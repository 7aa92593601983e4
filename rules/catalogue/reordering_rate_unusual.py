"""Brokers reject more batches of a topic by their sequence than is usual for this time.

Detects:
    Topics with a partition on which brokers reject unusually many batches as out of order for this half
    hour of the day or week. One finding per topic, with its worst partitions.

Why it matters:
    Single rejections heal by a retry. Many more than usual mean a network that drops connections, brokers
    that restart, or a client with a defect.

Inputs:
    OUT_OF_ORDER_SEQUENCE_NUMBER and its kin in the brokers' logs (settings `broker_logs`), per second and partition. The band of the
    series of the baseline run in force (docs/baselines.md); without one nothing is judged. It is scored by
    the rounds before: a finding opens and ends a polling interval or two late. What is not measured is
    UNKNOWN: it opens nothing, and what is open stays open. A series that the run in force has no band for ends.

Thresholds:
    Every known value for one minute is beyond the series' own threshold, three or more usual deviations
    away from what is expected and from the hour before; or, for half an hour, slowly. A deviation of less
    than 0.1/s and 20 % of what is expected never opens. It ends after ten calm
    minutes. If more than ten topics become unusual within three minutes, they and what follows within
    ten minutes are one finding of the cluster.

False positives:
    A rolling restart of brokers. Nothing is said here of what the rejections mean: the rules on sequence
    gaps decide, episode by episode, between reordering and loss.
    How often it would have fired last month: `tidemark backtest --rule reordering_rate_unusual`.

Runbook:
    Rules sequence_gap_reordering and sequence_gap_loss say of each episode behind it what it is. Look for restarts of brokers, for timeouts of requests, and for one producer that
    causes most of them.
"""

from __future__ import annotations

from typing import Final

from rules.baseline.series import Metric
from rules.judgement import Judgement
from rules.unusual import UnusualRule, judge_unusual, reasons_of
from rules.view import View

UNUSUAL: Final = UnusualRule.of(
    "reordering_rate_unusual",
    Metric.SEQUENCE_ERRORS,
    noun="rate of rejected batches",
    summary="Brokers reject more batches of a topic by their sequence than is usual for this time.",
)
RULE: Final = UNUSUAL.meta
Why: Final = reasons_of(__name__)


def judge(view: View) -> Judgement:
    """Judge every topic that has a band."""
    return judge_unusual(UNUSUAL, Why, view)
