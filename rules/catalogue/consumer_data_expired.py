"""Records were deleted before a group had read them.

Detects:
    Commits below the log start offset of their partition.

Why it matters:
    The records between the two are gone for this group: it skips them at its next fetch, or starts
    over, as its reset policy says. For a pipeline that promises exactly-once that is loss.

Inputs:
    Committed offset and log start offset, read in this order from the log start on.

Thresholds:
    None.

False positives:
    Groups that nobody uses any more, until their commits expire; DeleteRecords after a replay.

Runbook:
    If the group still matters: raise the topic's retention now, before more expires, and find out
    how long the group stood. `expired_offsets` says how many offsets it will not get.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.column import Column
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="consumer_data_expired",
    subject=SubjectKind.COMMIT,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="Records were deleted before a group had read them.",
)


class Why(Reason):
    """Reasons of this rule."""

    WITHIN_LOG = "within_log"
    BELOW_LOG_START = "below_log_start"
    LOG_START_NOT_SEEN = "log_start_not_seen"


def judge(view: View) -> Judgement:
    """Judge every commit."""
    commits, offsets = view.snapshot.commits, view.snapshot.offsets
    committed = Column.known(commits.committed_offset)
    log_start = offsets.log_start_offset.take(commits.row)
    expired = log_start - committed
    return decide(
        RULE,
        CommitSubjects.all_of(view.snapshot),
        [
            Case(~log_start.valid, Verdict.UNKNOWN, Why.LOG_START_NOT_SEEN),
            Case(expired.values > 0, Verdict.BREACH, Why.BELOW_LOG_START),
        ],
        (Verdict.OK, Why.WITHIN_LOG),
        {
            "committed_offset": committed,
            "log_start_offset": log_start,
            "expired_offsets": expired.where(expired.values > 0),
        },
    )
