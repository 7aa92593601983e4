"""A transaction is open although its timeout has passed.

Detects:
    Transactions that have been open for longer than their producer's `transaction.timeout.ms`.

Why it matters:
    The producer has crashed or hangs. read_committed consumers wait for the coordinator to abort
    the transaction; its records are then discarded and have to be written again.

Inputs:
    ListTransactions and DescribeTransactions of every broker.

Thresholds:
    The transaction's own timeout, and 1 second for clocks that differ. For the first minute it is
    only info: by default the coordinator checks every 10 seconds
    (`transaction.abort.timed.out.transaction.cleanup.interval.ms`). After that it is a warning.

False positives:
    Brokers whose clock differs from Tidemark's by more than a second. Transactions without a
    timeout by design (two-phase commit) are ignored.

Runbook:
    - `will_be_aborted` (info): search for the producer with this transactional id. It died, or was
      busy for longer than its timeout, and its next call will fail.
    - `not_aborted`: the coordinator does not abort the transaction. Check the broker in
      `coordinator` and its log, and restart it if the log shows no cause.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools
from rules.facts.transaction_memory import SeenTransaction
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.transactions.blocker_evidence import of_transaction
from rules.transactions.classes import TransactionClass, class_of
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

NOT_ABORTED_AFTER: Final = timedelta(minutes=1)

RULE: Final = RuleMeta(
    rule_id="transaction_overdue",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    summary="A transaction is open although its timeout has passed.",
    milder=(("will_be_aborted", Severity.INFO),),
)


class Why(Reason):
    """Reasons of this rule."""

    ENDED = "ended"
    OPEN = "open"  # within its timeout
    DECIDED = "decided"  # its markers are being written
    TWO_PHASE_COMMIT = "two_phase_commit"  # open without a limit, by design
    WILL_BE_ABORTED = "will_be_aborted"
    NOT_ABORTED = "not_aborted"  # and it should have been
    NOT_DESCRIBED = "not_described"
    COORDINATOR_NOT_SEEN = "coordinator_not_seen"


_OK: Final = {
    TransactionClass.OPEN: Why.OPEN,
    TransactionClass.PREPARE_COMMIT: Why.DECIDED,
    TransactionClass.PREPARE_ABORT: Why.DECIDED,
    TransactionClass.TWO_PHASE_COMMIT: Why.TWO_PHASE_COMMIT,
}


def judge(view: View) -> Judgement:
    """Judge every transaction that is open, or was in the round before."""
    now_open = view.memory.transactions.open
    before = view.before.transactions.open if view.before is not None else {}
    names = sorted({*now_open, *before})
    reasons = [_why(view, now_open.get(name)) for name in names]

    def at(*accepted: Why) -> Bools:
        return np.array([reason in accepted for reason in reasons], np.bool_)

    def details(position: int) -> dict[str, EvidenceValue]:
        seen = now_open.get(names[position]) or before[names[position]]
        return _transaction_evidence(view, seen)

    cluster = view.snapshot.cluster
    labels = tuple({"cluster": cluster, "transactional_id": name} for name in names)
    unknown, breach = (Why.NOT_DESCRIBED, Why.COORDINATOR_NOT_SEEN), Verdict.BREACH
    return decide(
        RULE,
        NamedSubjects(SubjectKind.TRANSACTION, labels),
        [
            *(Case(at(why), Verdict.UNKNOWN, why) for why in unknown),
            *(Case(at(why), breach, why) for why in (Why.WILL_BE_ABORTED, Why.NOT_ABORTED)),
            *(Case(at(why), Verdict.OK, why) for why in _OK.values()),
        ],
        (Verdict.OK, Why.ENDED),
        details=details,
    )


def _why(view: View, seen: SeenTransaction | None) -> Why:
    if seen is None:
        return Why.ENDED
    if not seen.is_seen:
        return Why.COORDINATOR_NOT_SEEN
    if not seen.is_described:
        return Why.NOT_DESCRIBED
    class_ = class_of(seen.transaction, view.now)
    if class_ is not TransactionClass.OVERDUE:
        return _OK.get(class_, Why.NOT_DESCRIBED)
    entry = seen.transaction
    if entry.started_at is None or entry.timeout is None:
        return Why.NOT_DESCRIBED
    is_late = view.now - entry.started_at > entry.timeout + NOT_ABORTED_AFTER
    return Why.NOT_ABORTED if is_late else Why.WILL_BE_ABORTED


def _transaction_evidence(view: View, seen: SeenTransaction) -> dict[str, EvidenceValue]:
    entry = seen.transaction
    names = sorted(entry.partitions or ())
    return {
        **of_transaction(entry, view.now),
        "partitions": [{"topic": name.topic, "partition": name.partition} for name in names[:20]],
        "partition_count": None if entry.partitions is None else len(names),
    }
