"""A partition has fewer in-sync replicas than `min.insync.replicas`.

Detects:
    Partitions whose ISR is smaller than `min.insync.replicas`, or smaller than the replica set
    where that is the lower number, as brokers count it.

Why it matters:
    The broker rejects producers with acks=all, so that a transactional pipeline stops. The high
    watermark does not advance: what producers with acks=1 still write is on too few replicas and is
    the first to be lost.

Inputs:
    Partition metadata and the topic's effective `min.insync.replicas` (DescribeConfigs).

Thresholds:
    None of its own: the setting of the topic.

False positives:
    A broker that restarts; for that reason a breach has to last for a minute before anybody is
    notified.

Runbook:
    If the reason is `brokers_gone`, begin with the finding `broker_gone` of each broker that
    `gone_brokers` names. Otherwise:
    Check which brokers are missing from the ISR and why (down, slow disk, network). Do not lower
    `min.insync.replicas` to continue before you know that the remaining replica is healthy.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.gone_brokers import GONE_REASON, missing_replicas
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="partition_under_min_isr",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    for_=timedelta(minutes=1),
    summary="A partition has fewer in-sync replicas than min.insync.replicas.",
    is_critical=True,
)


class Why(Reason):
    """Reasons of this rule."""

    ENOUGH = "enough"
    BELOW_MINIMUM = "below_minimum"
    BROKERS_GONE = GONE_REASON  # below the minimum: all replicas that it misses are on gone brokers
    ISR_UNKNOWN = "isr_unknown"  # this round could not read it
    MINIMUM_UNKNOWN = "minimum_unknown"  # needs DESCRIBE_CONFIGS on the topic


def judge(view: View) -> Judgement:
    """Judge every partition."""
    partitions = view.snapshot.described
    minimum, replicas = partitions.min_insync_replicas, partitions.replicas.lengths
    in_sync = Column(partitions.isr.lengths, partitions.isr.valid)
    missing = missing_replicas(view)
    demanded = np.minimum(minimum.values, replicas)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(~in_sync.valid, Verdict.UNKNOWN, Why.ISR_UNKNOWN),
            Case(~minimum.valid, Verdict.UNKNOWN, Why.MINIMUM_UNKNOWN),
            Case(in_sync.values >= demanded, Verdict.OK, Why.ENOUGH),
            Case(missing.by_gone, Verdict.BREACH, Why.BROKERS_GONE),
        ],
        (Verdict.BREACH, Why.BELOW_MINIMUM),
        {"in_sync_replicas": in_sync, "min_insync_replicas": minimum},
        details=missing.details,
    )
