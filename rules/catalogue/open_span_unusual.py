"""More of a topic is held back by open transactions than is usual for this time.

Detects:
    Topics with a partition whose open span (high watermark - last stable offset) is unusually long for
    this half hour of the day or week. One finding per topic, with its worst partitions.

Why it matters:
    Readers with read_committed wait for what is behind the last stable offset. A span that is longer than
    usual is a transaction that takes longer, or one that nobody will end.

Inputs:
    The last stable offset and the high watermark of each partition. The band of the
    series of the baseline run in force (docs/baselines.md); without one nothing is judged. It is scored by
    the rounds before: a finding opens and ends a polling interval or two late. What is not measured is
    UNKNOWN: it opens nothing, and what is open stays open. A series that the run in force has no band for ends.

Thresholds:
    Every known value for five minutes is beyond the series' own threshold, three or more usual deviations
    away from what is expected and from the hour before; or, for half an hour, slowly. A deviation of less
    than 1,000 offsets and 20 % of what is expected never opens. It ends after ten calm
    minutes. If more than ten topics become unusual within three minutes, they and what follows within
    ten minutes are one finding of the cluster.

False positives:
    A larger batch in one transaction, more input in the same time.
    How often it would have fired last month: `tidemark backtest --rule open_span_unusual`.

Runbook:
    `tidemark tx ls` shows the open transactions and who holds back the last stable offset; rules
    transaction_overdue, transaction_hanging and transaction_marker_stuck judge them. Where none of these is open, the transaction is
    within its own timeout: ask its owner.
"""

from __future__ import annotations

from typing import Final

from rules.baseline.series import Metric
from rules.judgement import Judgement
from rules.unusual import UnusualRule, judge_unusual, reasons_of
from rules.view import View

UNUSUAL: Final = UnusualRule.of(
    "open_span_unusual",
    Metric.OPEN_SPAN,
    noun="open span",
    summary="More of a topic is held back by open transactions than is usual for this time.",
)
RULE: Final = UNUSUAL.meta
Why: Final = reasons_of(__name__)


def judge(view: View) -> Judgement:
    """Judge every topic that has a band."""
    return judge_unusual(UNUSUAL, Why, view)
