"""An open transaction was cut: somebody else than its owner aborted it.

Detects:
    Transactions that were aborted while they were open because a producer with the same
    transactional id began, or because their timeout was over.

Why it matters:
    What was written in them is thrown away, and their owner is fenced: every further call of it
    fails. An application that takes this for a passing error loses what it had read meanwhile.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it): each change of a transaction.
    Without it the rule is UNKNOWN; requests alone show the present state. Where clients speak
    transactions v2 (Java 4.0 and newer) a second instance's abort observations exactly like the owner's own
    and is not told; a timeout is.

Thresholds:
    None: each such transaction is told.

False positives:
    With transactions v2 an owner that aborts by itself in the time between its timeout and the
    coordinator's next observation is taken for timed out. An application that crashed and was started again under the same transactional id: the new
    process ends what the old one had left open, as it should.

Runbook:
    Reason `second_instance`: find out whether two processes run with this transactional id (two
    deployments, a restart that did not wait for the old process). Reason `timeout`: the application
    was busy for longer than `transaction.timeout.ms`, or it died; observe its pauses and at the
    size of its transactions. In both cases make sure that it read its input again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools
from rules.facts.transaction_log import Cut, EndedTransaction
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="producer_fenced",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="An open transaction was aborted by somebody else than its owner.",
)


class Why(Reason):
    """Reasons of this rule."""

    ENDED_BY_OWNER = "ended_by_owner"
    SECOND_INSTANCE = "second_instance"
    TIMEOUT = "timeout"
    LOG_NOT_READ = "log_not_read"


def judge(view: View) -> Judgement:
    """Judge every transactional id of which a transaction ended since the last round."""
    log, cluster = view.snapshot.transaction_log, view.snapshot.cluster
    if not log.is_read:
        whole = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": cluster},))
        return decide(RULE, whole, [], (Verdict.UNKNOWN, Why.LOG_NOT_READ))
    cuts: dict[str, list[EndedTransaction]] = {}
    for ended in log.ended:
        cuts.setdefault(ended.transactional_id, []).extend([ended] if ended.cut else [])
    names = sorted(cuts)
    last = [cuts[name][-1].cut if cuts[name] else None for name in names]

    def at(cut: Cut) -> Bools:
        return np.array([one is cut for one in last], np.bool_)

    def details(position: int) -> dict[str, EvidenceValue]:
        return _told(cuts[names[position]])

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


def _told(cuts: list[EndedTransaction]) -> dict[str, EvidenceValue]:
    """Return the last of a round's cuts, and how many there were."""
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
