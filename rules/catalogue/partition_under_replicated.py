"""A partition has fewer in-sync replicas than replicas for a long time.

Detects:
    Partitions whose ISR has been smaller than their replica set without interruption for a while
    (Kafka's UnderReplicatedPartitions).

Why it matters:
    Nothing fails yet, but the redundancy that was paid for is not there: with the next broker that
    fails the partition may reject acks=all, go offline, or lose what only one replica has.

Inputs:
    Partition metadata (replicas, ISR); since when the ISR has been smaller, which is kept from round
    to round and over a restart of Tidemark. A round that does not see the ISR neither begins nor
    ends that time; where none sees it for more than 10 minutes, the time begins anew.

Thresholds:
    10 minutes: a broker that restarts is back in sync within a few minutes, also in a rolling
    restart, in which each broker restarts after the one before has caught up.

False positives:
    A reassignment that copies for longer than that: the new replicas count as replicas from its
    beginning, and are in sync at its end. A broker that was replaced and copies all its data.

Runbook:
    If the reason is `brokers_gone`, begin with the finding `broker_gone` of each broker that
    `gone_brokers` names. Otherwise find the lagging replicas:
    `kafka-topics.sh --describe --under-replicated-partitions` lists replicas and ISR. One broker in
    all of them: check its disk, its network and its log. All brokers: check the load and
    `num.replica.fetchers`. `kafka-reassign-partitions.sh --list` shows whether a reassignment is
    running.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.column import Column
from rules.gone_brokers import GONE_REASON, missing_replicas
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

LASTS: Final = timedelta(minutes=10)  # not below `replication_memory.LONGEST_UNSEEN`

RULE: Final = RuleMeta(
    rule_id="partition_under_replicated",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    summary="A partition has had fewer in-sync replicas than replicas for ten minutes.",
)


class Why(Reason):
    """Reasons of this rule."""

    IN_SYNC = "in_sync"
    OUT_OF_SYNC_BRIEFLY = "out_of_sync_briefly"
    OUT_OF_SYNC = "out_of_sync"
    BROKERS_GONE = GONE_REASON  # out of sync: all missing replicas are on brokers that are gone
    ISR_UNKNOWN = "isr_unknown"  # this round could not read it


def judge(view: View) -> Judgement:
    """Judge every partition."""
    partitions = view.snapshot.described
    replicas = Column(partitions.replicas.lengths, partitions.replicas.valid)
    in_sync = Column(partitions.isr.lengths, partitions.isr.valid)
    since, missing = view.since(view.memory.replication), missing_replicas(view)
    lasts = view.is_unchanged_for(since, LASTS)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(~(replicas.valid & in_sync.valid), Verdict.UNKNOWN, Why.ISR_UNKNOWN),
            Case(in_sync.values >= replicas.values, Verdict.OK, Why.IN_SYNC),
            Case(~lasts, Verdict.OK, Why.OUT_OF_SYNC_BRIEFLY),
            Case(missing.by_gone, Verdict.BREACH, Why.BROKERS_GONE),
        ],
        (Verdict.BREACH, Why.OUT_OF_SYNC),
        {
            "in_sync_replicas": in_sync,
            "replicas": replicas,
            "out_of_sync_ms": view.unchanged_ms(since),
            "min_insync_replicas": partitions.min_insync_replicas,
        },
        details=missing.details,
    )
