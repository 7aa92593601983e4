"""A topic is written more or less than is usual for this time.

Detects:
    Topics with a partition that is written unusually fast, unusually slowly, or hardly any more for this
    half hour of the day or week. One finding per topic, with its worst partitions.

Why it matters:
    A producer that stopped, or that sends to another partition, breaks no rule of Kafka: only what is
    usual shows that records are missing. A surge is what groups fall behind on.

Inputs:
    The growth of each partition's log end, in offsets per second. The band of the
    series of the baseline run in force (docs/baselines.md); without one nothing is judged. It is scored by
    the rounds before: a finding opens and ends a polling interval or two late. What is not measured is
    UNKNOWN: it opens nothing, and what is open stays open. A series that the run in force has no band for ends.

Thresholds:
    Every known value for five minutes is beyond the series' own threshold, three or more usual deviations
    away from what is expected and from the hour before. A deviation of less
    than 1/s, and half of what is expected, or 1.2 times as much above it never opens. Less than a tenth of what is expected is always
    reported, unless the topic often is that low. Slow changes are growth, and are not reported. It ends after ten calm
    minutes. If more than ten topics become unusual within three minutes, they and what follows within
    ten minutes are one finding of the cluster.

False positives:
    A holiday, a campaign, a migration, a topic that is written by another job from now on: after two
    days the new level is usual. Control records of transactions and offsets that compaction removed count as offsets.
    How often it would have fired last month: `tidemark backtest --rule produce_rate_unusual`.

Runbook:
    `tidemark baselines ls --topic TOPIC --metric produce_rate` shows what is usual. Fell: is the producer
    up, and do its errors rise (rules record_error_rate_high and record_error_rate_unusual)? One partition alone: its
    leader (rule partition_offline) or the producer's keys. Rose: whether the groups keep up (rule consumer_lag_unusual).
"""

from __future__ import annotations

from typing import Final

from rules.baseline.series import Metric
from rules.judgement import Judgement
from rules.unusual import UnusualRule, judge_unusual, reasons_of
from rules.view import View

UNUSUAL: Final = UnusualRule.of(
    "produce_rate_unusual",
    Metric.PRODUCE_RATE,
    noun="produce rate",
    summary="A topic is written more or less than is usual for this time.",
)
RULE: Final = UNUSUAL.meta
Why: Final = reasons_of(__name__)


def judge(view: View) -> Judgement:
    """Judge every topic that has a band."""
    return judge_unusual(UNUSUAL, Why, view)
