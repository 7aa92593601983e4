"""A producer commits very many very small transactions.

Detects:
    Transactional ids that end at least 20 transactions per second, over five to ten minutes, with
    fewer than 10 records in each on average.

Why it matters:
    A transaction costs the same whatever it holds: one control batch (a marker) on each partition
    that it wrote to, and three or more records in `__transaction_state`, all of them replicated. With
    one record per transaction more than three quarters of what brokers write is not records.
    The markers use offsets and disk until retention deletes them, and consumers fetch them too. The
    producer itself waits for its coordinator most of the time.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it), and the high watermarks of the
    partitions that its transactions marked: what they moved, without the markers, are records. No
    request is sent for it. Where several transactional ids write to one partition, all its records
    count for each of them, so that too many are counted and never too few; the batches that rounds
    sample for the rules of posture (needs READ on the topic) tell them apart.

Thresholds:
    20 transactions per second: Kafka Streams commits every 100 ms by default
    (`commit.interval.ms` with `exactly_once_v2`), which is at most 10 per second of each thread, and
    small transactions are meant there. 10 records: the marker and the records of the log are then
    less than a third of what is written to one partition. 15 minutes more before anybody is
    notified, and then as info: nothing is wrong with the records.

False positives:
    An application that needs each record committed by itself at once, and knows what it costs.
    Records that are written to a partition without a transaction are counted as if they were within
    one, so that the rule is silent then.

Runbook:
    Put more records into each transaction; docs/transaction-cost.md has the numbers.

    - An application with its own producer: commit after some hundred records or some 100 ms, whichever
      is first. Spring Kafka: a batch listener instead of a record listener.
    - Kafka Streams: raise `commit.interval.ms` (100 ms by default) towards the latency that readers
      can accept.
    - Kafka Connect source: `transaction.boundary=interval` with `transaction.boundary.interval.ms`, or a
      larger batch of each poll of the connector.
    - Flink: the interval of checkpoints is the interval of commits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Column
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide, decide_cluster
from rules.transactions.costs import STATE_RECORDS, Costs, TransactionCost, costs_of
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

PER_SECOND: Final = 20  # transactions
RECORDS: Final = 10  # per transaction
LONG_ENOUGH: Final = timedelta(minutes=1)

RULE: Final = RuleMeta(
    rule_id="transaction_too_small",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.STATE,
    severity=Severity.INFO,
    for_=timedelta(minutes=15),
    summary="A producer commits very many very small transactions.",
    undecided=("partitions_shared",),
)


class Why(Reason):
    """Reasons of this rule."""

    LARGE_ENOUGH = "large_enough"
    FEW_TRANSACTIONS = "few_transactions"
    TOO_SMALL = "too_small"
    # small on average, other transactional ids write to the same partitions, and samples do not decide
    PARTITIONS_SHARED = "partitions_shared"
    OBSERVED_BRIEFLY = "observed_briefly"  # for less than a minute
    ENDS_NOT_SEEN = "ends_not_seen"  # the high watermark of one of its partitions, now or then
    LOG_READ_IN_PART = "log_read_in_part"
    LOG_NOT_READ = "log_not_read"


def judge(view: View) -> Judgement:
    """Judge every transactional id that ended a transaction in the last minutes."""
    cluster = view.snapshot.cluster
    if not view.snapshot.transaction_log.is_read:
        return decide_cluster(RULE, cluster, Why.LOG_NOT_READ)
    costs = costs_of(view)
    ids = costs.ids
    transactions = np.array([cost.counted.transactions for cost in ids], np.int64)
    at_most = Column.of(cost.records_at_most for cost in ids)
    mean = np.array([cost.records_per_transaction or 0.0 for cost in ids], np.float64)
    is_few = transactions < PER_SECOND * costs.seconds
    is_brief = np.full(len(ids), costs.window < LONG_ENOUGH)
    is_part = np.full(len(ids), not costs.is_whole)
    is_small = at_most.valid & (at_most.values < RECORDS * transactions)
    is_small |= np.array([_is_sampled_small(cost) for cost in ids], np.bool_)
    labels = tuple({"cluster": cluster, "transactional_id": cost.transactional_id} for cost in ids)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.TRANSACTION, labels),
        [
            Case(is_few & is_part, Verdict.UNKNOWN, Why.LOG_READ_IN_PART),
            Case(is_few, Verdict.OK, Why.FEW_TRANSACTIONS),
            Case(is_brief, Verdict.UNKNOWN, Why.OBSERVED_BRIEFLY),
            Case(~at_most.valid, Verdict.UNKNOWN, Why.ENDS_NOT_SEEN),
            Case(is_small, Verdict.BREACH, Why.TOO_SMALL),
            Case(mean < RECORDS, Verdict.UNKNOWN, Why.PARTITIONS_SHARED),
        ],
        (Verdict.OK, Why.LARGE_ENOUGH),
        {"transactions": Column.known(transactions), "records_at_most": at_most},
        details=lambda position: _evidence(costs, ids[position]),
    )


def _is_sampled_small(cost: TransactionCost) -> bool:
    """Whether its own batches show it, whoever else writes to its partitions."""
    return cost.sample is not None and cost.sample.records_at_most < RECORDS


def _evidence(costs: Costs, cost: TransactionCost) -> dict[str, EvidenceValue]:
    counted = cost.counted
    return {
        "window_ms": costs.window // timedelta(milliseconds=1),
        "transactions_per_second": _rounded(costs.per_second(counted.transactions)),
        "records_per_transaction": _rounded(cost.records_per_transaction),
        "markers_per_second": _rounded(costs.per_second(counted.markers)),
        "state_records_per_second": _rounded(
            costs.per_second(STATE_RECORDS * counted.transactions)
        ),
        "marker_share_percent": _rounded(
            None if cost.marker_share is None else 100 * cost.marker_share
        ),
        "is_shared": cost.is_shared,
        "sampled_records_at_most": _rounded(
            None if cost.sample is None else cost.sample.records_at_most
        ),
        "bytes_per_transaction": _rounded(cost.bytes_per_transaction),
        "coordinator": counted.coordinator,
        "producer_id": counted.producer_id,
    }


def _rounded(number: float | None) -> int | None:
    return None if number is None else round(number)
