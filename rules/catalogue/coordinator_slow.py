"""Markers of one transaction coordinator take long.

Detects:
    Brokers of whose transactions, over five to ten minutes, at least one in twenty took more than a
    second from the coordinator's decision to its last marker.

Why it matters:
    A read_committed consumer sees nothing of a transaction, and nothing beyond it, until its marker is
    written and replicated, and the producer cannot begin its next one before. All transactional ids
    of this coordinator share its channels to the other brokers, so that one slow leader delays
    applications that never write to it.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it): the times at which decision and end
    were written, by the coordinator's own clock. The leader of a transactional id's partition of that
    topic is its coordinator. `slow_leaders` counts, among the slow transactions, who leads the
    partitions that were marked.

Thresholds:
    One in twenty of at least 200 transactions, above one second: markers take milliseconds, and
    some 100 ms on a busy cluster. Each failover delays one transaction of each producer, and a rolling
    restart some in a hundred, which is why it is not the 99th percentile that decides. 15 minutes before
    anybody is notified, which is longer than the window. A marker that never comes is rule
    transaction_marker_stuck.

False positives:
    Failovers every few seconds, for a quarter of an hour. Fewer than 200 transactions are not judged.

Runbook:
    See `slow_leaders` first.

    - One broker is in nearly all of them: that leader is slow, not the coordinator. Check its disks,
      its request handlers (`RequestHandlerAvgIdlePercent`), and the replication of its partitions (rules
      high_watermark_stuck, partition_under_replicated).
    - Leaders are mixed, and other coordinators are fast: it is this coordinator. Check the same of
      it, and how many transactional ids it has (`tidemark tx cost`). Many more than others: elect the
      preferred leaders of `__transaction_state`, or reassign some of its partitions.
    - All coordinators are slow: `min.insync.replicas` and slow followers, the network, or more
      transactions than the brokers write (rule transaction_too_small).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Column
from rules.facts.last_observation import microseconds
from rules.facts.transaction_costs import SLOW
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide, decide_cluster
from rules.transactions.costs import CoordinatorCost, coordinator_costs, window_of
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

ENOUGH: Final = 200  # transactions
ONE_IN: Final = 20
MAX_LEADERS: Final = 5  # that the evidence lists
MILLISECOND: Final = timedelta(milliseconds=1)

RULE: Final = RuleMeta(
    rule_id="coordinator_slow",
    subject=SubjectKind.BROKER,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=15),
    summary="Markers of one transaction coordinator take long.",
)


class Why(Reason):
    """Reasons of this rule."""

    MARKERS_QUICK = "markers_quick"
    TOO_FEW = "too_few"
    MARKERS_SLOW = "markers_slow"
    LOG_NOT_READ = "log_not_read"
    LOG_READ_IN_PART = "log_read_in_part"  # too few were read, and there may be more


def judge(view: View) -> Judgement:
    """Judge every broker that is registered, or was a coordinator in the last minutes."""
    cluster = view.snapshot.cluster
    if not view.snapshot.transaction_log.is_read:
        return decide_cluster(RULE, cluster, Why.LOG_NOT_READ)
    coordinators = coordinator_costs(view)
    memory = view.memory.costs
    transactions = np.array([cost.transactions for cost in coordinators], np.int64)
    slow = np.array([cost.markers.durations.above(SLOW) for cost in coordinators], np.int64)
    is_few = transactions < ENOUGH
    is_part = np.full(len(coordinators), not memory.is_whole)
    labels = tuple({"cluster": cluster, "broker": str(cost.coordinator)} for cost in coordinators)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.BROKER, labels),
        [
            Case(is_few & is_part, Verdict.UNKNOWN, Why.LOG_READ_IN_PART),
            Case(is_few, Verdict.OK, Why.TOO_FEW),
            Case(slow * ONE_IN >= transactions, Verdict.BREACH, Why.MARKERS_SLOW),
        ],
        (Verdict.OK, Why.MARKERS_QUICK),
        {"transactions": Column.known(transactions), "slow_transactions": Column.known(slow)},
        details=lambda position: _evidence(
            coordinators[position], window_of(memory, microseconds(view.now))
        ),
    )


def _evidence(cost: CoordinatorCost, window: timedelta) -> dict[str, EvidenceValue]:
    durations, leaders = cost.markers.durations, cost.markers.slow_by_leader
    half, p95, p99 = (_milliseconds(durations.quantile(share)) for share in (0.5, 0.95, 0.99))
    slowest_first = sorted(leaders.items(), key=lambda item: (-item[1], item[0]))
    return {
        "window_ms": window // MILLISECOND,
        "half_took_at_most_ms": half,
        "p95_at_most_ms": p95,
        "p99_at_most_ms": p99,
        "transactional_ids": cost.transactional_ids,
        "slow_leaders": [
            {"broker": broker, "slow_transactions": count}
            for broker, count in slowest_first[:MAX_LEADERS]
        ],
    }


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // MILLISECOND
