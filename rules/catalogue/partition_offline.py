"""A partition has no leader.

Detects:
    Partitions without a leader: nobody can write to them or read from them.

Why it matters:
    Producers block until their delivery timeout and then fail; consumers receive nothing. An
    idempotent or transactional pipeline stops here and may return records to its application as
    failed.

Inputs:
    Partition metadata (DescribeTopicPartitions or Metadata).

Thresholds:
    None: no leader is a breach at once. It has to last for 30 s before anybody is notified, because
    an ordinary failover leaves a partition without a leader for the session timeout of a broker (9
    s by default).

False positives:
    A rolling restart, for topics with one replica.

Runbook:
    If the reason is `brokers_gone`, begin with the finding `broker_gone` of each broker that
    `gone_brokers` names: nobody else can be elected without loss. Otherwise:
    Check which replicas the partition has and which of these brokers are registered. First bring
    back a broker of the ISR or of the ELR: it has everything that was committed. Do not elect an
    unclean leader before you have copied the partition's directory from the last leader's disk.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.gone_brokers import GONE_REASON, missing_leaders
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="partition_offline",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    for_=timedelta(seconds=30),
    summary="A partition has no leader.",
    is_critical=True,
)


class Why(Reason):
    """Reasons of this rule."""

    LED = "led"
    NO_LEADER = "no_leader"
    BROKERS_GONE = GONE_REASON  # no leader: all brokers that could lead it are gone
    NOT_DESCRIBED = (
        "not_described"  # this round's metadata lacks the partition, or could not be read
    )
    LEADER_NOT_REGISTERED = "leader_not_registered"  # the answers of two requests disagree


def judge(view: View) -> Judgement:
    """Judge every partition."""
    partitions = view.snapshot.described
    registered = np.array([broker.broker_id for broker in view.snapshot.brokers], np.int64)
    leader, missing = partitions.leader, missing_leaders(view)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(~partitions.replicas.valid, Verdict.UNKNOWN, Why.NOT_DESCRIBED),
            Case(missing.by_gone, Verdict.BREACH, Why.BROKERS_GONE),
            Case(~leader.valid, Verdict.BREACH, Why.NO_LEADER),
            Case(~np.isin(leader.values, registered), Verdict.UNKNOWN, Why.LEADER_NOT_REGISTERED),
        ],
        (Verdict.OK, Why.LED),
        {
            "leader": leader,
            "replicas": Column(partitions.replicas.lengths, partitions.replicas.valid),
            "in_sync_replicas": Column(partitions.isr.lengths, partitions.isr.valid),
        },
        details=missing.details,
    )
