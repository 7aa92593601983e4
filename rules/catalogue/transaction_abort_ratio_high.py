"""A producer aborts most of its transactions.

Detects:
    Transactional ids of which at least half of the transactions of the last 10 minutes were
    aborted.

Why it matters:
    The work of every aborted transaction is repeated or given up. A pipeline that aborts again and
    again makes no progress, although it is busy and its topics grow.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it). Without it the rule is UNKNOWN.

Thresholds:
    Half of at least 20 transactions in 10 minutes: fewer are not significant. A breach has to last
    for 5 more minutes before anybody is notified, so that the aborts after a failover are over.

False positives:
    Applications that abort routinely, such as those that validate by trying.

Runbook:
    Read the application's log for the cause of the aborts. Often records are rejected (too large,
    schema), a downstream call fails within the transaction, or the transaction timeout is too short
    (rule producer_fenced).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.facts.transaction_memory import OUTCOMES_KEPT
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide, decide_cluster
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

ENOUGH: Final = 20  # transactions
PERCENT: Final = 50

RULE: Final = RuleMeta(
    rule_id="transaction_abort_ratio_high",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=5),
    summary="A producer aborts most of its transactions.",
)


class Why(Reason):
    """Reasons of this rule."""

    MOSTLY_COMMITTED = "mostly_committed"
    TOO_FEW = "too_few"
    MOSTLY_ABORTED = "mostly_aborted"
    LOG_NOT_READ = "log_not_read"
    LOG_READ_IN_PART = "log_read_in_part"  # the log was not read for the whole 10 minutes


def _is_whole(view: View) -> bool:
    """Whether the log was read without interruption for as long as outcomes are counted."""
    since = view.memory.transactions.log_since_us
    kept_us = OUTCOMES_KEPT // MICROSECOND
    return since is not None and microseconds(view.now) - since >= kept_us


def judge(view: View) -> Judgement:
    """Judge every transactional id that ended a transaction within the last 10 minutes."""
    cluster = view.snapshot.cluster
    if not view.snapshot.transaction_log.is_read:
        return decide_cluster(RULE, cluster, Why.LOG_NOT_READ)
    outcomes = view.memory.transactions.outcomes
    before = view.before.transactions.outcomes if view.before is not None else {}
    names = sorted({*outcomes, *before})
    committed = np.array(
        [sum(outcome.committed for outcome in outcomes.get(name, ())) for name in names], np.int64
    )
    aborted = np.array(
        [sum(outcome.aborted for outcome in outcomes.get(name, ())) for name in names], np.int64
    )
    ended = committed + aborted
    # An id that aborts may have done so more often while the log was not read.
    may_lack = (aborted > 0) & (not _is_whole(view))
    labels = tuple({"cluster": cluster, "transactional_id": name} for name in names)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.TRANSACTION, labels),
        [
            Case((ended < ENOUGH) & may_lack, Verdict.UNKNOWN, Why.LOG_READ_IN_PART),
            Case(ended < ENOUGH, Verdict.OK, Why.TOO_FEW),
            Case(aborted * 100 >= ended * PERCENT, Verdict.BREACH, Why.MOSTLY_ABORTED),
        ],
        (Verdict.OK, Why.MOSTLY_COMMITTED),
        {"committed": Column.known(committed), "aborted": Column.known(aborted)},
    )
