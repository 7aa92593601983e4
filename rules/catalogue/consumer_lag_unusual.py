"""A group is further behind than is usual for this time.

Detects:
    Groups whose time lag on a partition is unusually high for this half hour of the day or week, and new
    within the last hour or slowly growing. One finding per group, with its worst partitions.

Why it matters:
    Lag that no objective limits is seen here first: a slow member, a poison record, a sink that got
    slower, a batch that writes more than the group can read.

Inputs:
    The time lag by read_committed of each partition that the group has committed on. The band of the
    series of the baseline run in force (docs/baselines.md); without one nothing is judged. It is scored by
    the rounds before: a finding opens and ends a polling interval or two late. What is not measured is
    UNKNOWN: it opens nothing, and what is open stays open. A series that the run in force has no band for ends.

Thresholds:
    Every known value for five minutes is beyond the series' own threshold, three or more usual deviations
    away from what is expected and from the hour before; or, for half an hour, slowly. A deviation of less
    than 10 s and 20 % of what is expected never opens. What falls is being worked off, and does not open. It ends after ten calm
    minutes. If more than ten groups become unusual within three minutes, they and what follows within
    ten minutes are one finding of the cluster.

False positives:
    A batch that runs at another hour than usual, a holiday, a load test. A group that is above the last
    stable offset reads uncommitted records: its lag by read_committed is not measured, and it is UNKNOWN.
    How often it would have fired last month: `tidemark backtest --rule consumer_lag_unusual`.

Runbook:
    `tidemark baselines ls --group GROUP --metric read_committed_lag_seconds` shows what is usual, and
    `tidemark collect --once --groups GROUP` where the group is behind now. On one partition: a slow member
    or a poison record. On all of them: too few members, a slow sink, more input (rule
    produce_rate_unusual), or a last stable offset that does not move (rules open_span_unusual and
    last_stable_offset_stuck).
"""

from __future__ import annotations

from typing import Final

from rules.baseline.series import Metric
from rules.judgement import Judgement
from rules.unusual import UnusualRule, judge_unusual, reasons_of
from rules.view import View

UNUSUAL: Final = UnusualRule.of(
    "consumer_lag_unusual",
    Metric.READ_COMMITTED_LAG_SECONDS,
    noun="read-committed lag",
    summary="A group is further behind than is usual for this time.",
)
RULE: Final = UNUSUAL.meta
Why: Final = reasons_of(__name__)


def judge(view: View) -> Judgement:
    """Judge every group that has a band."""
    return judge_unusual(UNUSUAL, Why, view)
