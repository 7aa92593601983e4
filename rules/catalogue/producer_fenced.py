"""An open transaction was aborted by somebody other than its producer.

Detects:
    Transactions that were aborted while they were open because another producer with the same
    transactional id was initialised, or because their timeout had passed.

Why it matters:
    The records of the transaction are discarded, and its producer is fenced: each of its further
    calls fails. An application that treats this as a transient error loses the input it had read in
    between.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it), which contains every change of a
    transaction. Without it the rule is UNKNOWN: requests show the present state only. With
    transactions v2 (Java clients since 4.0), an abort by a second instance cannot be distinguished
    from an abort by the producer itself and is not reported; a timeout is.

Thresholds:
    None: each such transaction is reported.

False positives:
    An application that crashed and was started again under the same transactional id: the new
    process ends the transaction that the old one left open, as it should. With transactions v2, a
    producer that aborts by itself between its timeout and the coordinator's next check counts as
    timed out.

Runbook:
    In both cases make sure that the application has read its input again.

    - `second_instance`: find out whether two processes use this transactional id (two deployments,
      or a restart that did not wait for the old process).
    - `timeout`: the application was busy for longer than `transaction.timeout.ms`, or it died.
      Check its pauses and the size of its transactions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools
from rules.facts.transaction_log import Cut, EndedTransaction
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide, decide_cluster
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="producer_fenced",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    summary="An open transaction was aborted by somebody other than its producer.",
)


class Why(Reason):
    """Reasons of this rule."""

    ENDED_BY_OWNER = "ended_by_owner"
    SECOND_INSTANCE = "second_instance"
    TIMEOUT = "timeout"
    LOG_NOT_READ = "log_not_read"


def judge(view: View) -> Judgement:
    """Judge every transactional id that ended a transaction since the last round."""
    log, cluster = view.snapshot.transaction_log, view.snapshot.cluster
    if not log.is_read:
        return decide_cluster(RULE, cluster, Why.LOG_NOT_READ)
    cuts: dict[str, list[EndedTransaction]] = {}
    for ended in log.ended:
        cuts.setdefault(ended.transactional_id, []).extend([ended] if ended.cut else [])
    names = sorted(cuts)
    last = [cuts[name][-1].cut if cuts[name] else None for name in names]

    def at(cut: Cut) -> Bools:
        return np.array([last_cut is cut for last_cut in last], np.bool_)

    def details(position: int) -> dict[str, EvidenceValue]:
        return _cut_evidence(cuts[names[position]])

    return decide(
        RULE,
        NamedSubjects(
            SubjectKind.TRANSACTION,
            tuple({"cluster": cluster, "transactional_id": name} for name in names),
        ),
        [
            Case(at(Cut.SECOND_INSTANCE), Verdict.BREACH, Why.SECOND_INSTANCE),
            Case(at(Cut.TIMEOUT), Verdict.BREACH, Why.TIMEOUT),
        ],
        (Verdict.OK, Why.ENDED_BY_OWNER),
        details=details,
    )


def _cut_evidence(cuts: list[EndedTransaction]) -> dict[str, EvidenceValue]:
    """Return the last transaction that was aborted from outside in this round, and their number."""
    if not cuts:
        return {}
    last = cuts[-1]
    return {
        "producer_id": last.producer_id,
        "producer_epoch": last.producer_epoch,
        "started_at": _text(last.started_at),
        "aborted_at": _text(last.ended_at),
        "was_open_ms": last.duration // timedelta(milliseconds=1),
        "timeout_ms": last.timeout // timedelta(milliseconds=1),
        "cut_transactions": len(cuts),
    }


def _text(timestamp: datetime) -> str:
    return timestamp.isoformat(timespec="milliseconds")
