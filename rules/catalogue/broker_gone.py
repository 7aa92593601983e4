"""A broker that holds replicas is not among the brokers of the cluster any more.

Detects:
    Brokers to which partitions are assigned and which the cluster does not list: they died, were
    fenced by the controller because their heartbeats stopped, or were shut down.

Why it matters:
    Its partitions have one replica fewer, which is no more than a lack of redundancy as long as
    others are in sync. Where it had the last one, partitions have no leader or reject acks=all. A
    finding explains those of its partitions, and mutes their alerts.

Inputs:
    The registered brokers (DescribeCluster) and the replicas, ISR and ELR of partitions; since when
    a broker has been missing, which is kept from round to round and over a restart of Tidemark.

Thresholds:
    30 s if a partition has no leader because of it and a minute if one is below
    `min.insync.replicas`, like the alerts of these partitions, which it explains: it is critical no
    earlier than they would be. A partition that misses several gone brokers counts from when the
    last of them went. Otherwise 5 minutes, and a warning: in a rolling restart each broker is gone
    for a minute or two.

False positives:
    A broker that was removed on purpose while partitions were still assigned to it. One without
    replicas, as after a decommission, is not reported. While nothing of the cluster can be reached
    no broker counts as gone: that is `observation_stale`. While a round cannot list all topics, and
    none of the listed ones has a replica on it, it is UNKNOWN: its replicas may have been moved.

Runbook:
    `address` is where the broker was last registered, `listed_before_ms` how long ago. Check there
    whether its process runs, and the end of its server.log. If it runs: its connection to the
    controllers (it is fenced while its heartbeats do not arrive) and its disk. Start it again as it
    was, with its data: after an unclean stop it recovers its logs first, which takes minutes.
    If its disk is lost and `offline_partitions` is above 0, read `partition_offline` before you
    elect anyone. A broker that does not come back: reassign its partitions
    (`kafka-reassign-partitions.sh`), then remove its registration
    (`kafka-cluster.sh unregister --id`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np

from rules.evidence import Evidence
from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.last_observation import microseconds
from rules.gone_brokers import contradicts_gone, missing_leaders, missing_replicas
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import MICROSECONDS_PER_MS, View

OFFLINE_AFTER: Final = timedelta(seconds=30)  # the `for` of partition_offline
UNDER_MIN_ISR_AFTER: Final = timedelta(minutes=1)  # the `for` of partition_under_min_isr
GONE_AFTER: Final = timedelta(minutes=5)

RULE: Final = RuleMeta(
    rule_id="broker_gone",
    subject=SubjectKind.BROKER,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    summary="A broker that holds replicas is not among the brokers of the cluster any more.",
    milder=(("replicas_missing", Severity.WARNING),),
)


class Why(Reason):
    """Reasons of this rule."""

    REGISTERED = "registered"
    GONE_BRIEFLY = "gone_briefly"
    PARTITIONS_OFFLINE = "partitions_offline"  # nobody else can lead some of its partitions
    PARTITIONS_UNDER_MIN_ISR = "partitions_under_min_isr"  # some reject acks=all without it
    REPLICAS_MISSING = "replicas_missing"  # redundancy only
    REPLICAS_UNKNOWN = "replicas_unknown"  # none, as far as the round could list topics
    NONE_REGISTERED = "none_registered"  # the answer lists no broker at all, and came from one
    ANSWERS_DISAGREE = "answers_disagree"  # another answer shows it leading or in sync


def judge(view: View) -> Judgement:
    """Judge every broker that is registered or holds a replica."""
    partitions, gone_us = view.snapshot.described, view.memory.brokers.gone_us
    registered = {int(broker.broker_id) for broker in view.snapshot.brokers}
    holding = () if registered else np.unique(partitions.replicas.values).tolist()
    brokers = np.array(sorted({*registered, *gone_us, *holding}), np.int64)
    since = Column.of(gone_us.get(broker) for broker in brokers.tolist())
    offline, below = _count_offline(view, brokers), _count_below(view, brokers)
    none_registered = np.full(len(brokers), not registered)
    replicas = _count(partitions.replicas, brokers)
    is_placed = (replicas > 0) | view.snapshot.placement_complete
    labels = tuple(
        {"cluster": view.snapshot.cluster, "broker": str(broker)} for broker in brokers.tolist()
    )
    return decide(
        RULE,
        NamedSubjects(SubjectKind.BROKER, labels),
        [
            Case(none_registered, Verdict.UNKNOWN, Why.NONE_REGISTERED),
            Case(~since.valid, Verdict.OK, Why.REGISTERED),
            Case(~is_placed, Verdict.UNKNOWN, Why.REPLICAS_UNKNOWN),
            Case(contradicts_gone(partitions, brokers), Verdict.UNKNOWN, Why.ANSWERS_DISAGREE),
            Case(offline.lasting > 0, Verdict.BREACH, Why.PARTITIONS_OFFLINE),
            Case(below.lasting > 0, Verdict.BREACH, Why.PARTITIONS_UNDER_MIN_ISR),
            Case(~view.is_unchanged_for(since, GONE_AFTER), Verdict.OK, Why.GONE_BRIEFLY),
        ],
        (Verdict.BREACH, Why.REPLICAS_MISSING),
        {
            "gone_ms": view.unchanged_ms(since),
            "replicas": Column.known(replicas).where(is_placed),
            "offline_partitions": Column.known(offline.now).where(is_placed),
            "partitions_under_min_isr": Column.known(below.now).where(is_placed),
        },
        details=lambda position: _last_listed(view, int(brokers[position])),
    )


def _last_listed(view: View, broker: int) -> Evidence:
    """Return where and when a broker was last registered; None where that was never seen."""
    entry = view.memory.brokers.listed.get(broker)
    if entry is None:
        return {"address": None, "rack": None, "listed_before_ms": None}
    before = (microseconds(view.now) - entry.listed_us) // MICROSECONDS_PER_MS
    address = f"{entry.host}:{entry.port}"
    return {"address": address, "rack": entry.rack, "listed_before_ms": before}


class _Counts(NamedTuple):
    """Per broker, how many partitions cannot be used without it, and miss only gone brokers."""

    now: Int64s
    lasting: Int64s  # of these, whose missed brokers have all been gone for the limit


def _count_offline(view: View, brokers: Int64s) -> _Counts:
    """Count per broker the partitions without a leader that it, and only gone brokers, could lead."""
    missing = missing_leaders(view)
    return _Counts(
        now=_count(missing.missed, brokers, missing.by_gone),
        lasting=_count(missing.missed, brokers, missing.by_gone_for(OFFLINE_AFTER)),
    )


def _count_below(view: View, brokers: Int64s) -> _Counts:
    """Count per broker the led partitions below min.insync.replicas that miss only gone brokers."""
    partitions, missing = view.snapshot.described, missing_replicas(view)
    minimum = partitions.min_insync_replicas
    demanded = np.minimum(minimum.values, partitions.replicas.lengths)
    is_below = minimum.valid & partitions.leader.valid & (partitions.isr.lengths < demanded)
    lasting = missing.by_gone_for(UNDER_MIN_ISR_AFTER)
    return _Counts(
        now=_count(missing.missed, brokers, missing.by_gone & is_below),
        lasting=_count(missing.missed, brokers, lasting & is_below),
    )


def _count(lists: Ragged, brokers: Int64s, rows: Bools | None = None) -> Int64s:
    """Count in how many of the lists each broker is, of the marked rows."""
    values = lists.values if rows is None else lists.values[rows[lists.row_of_value]]
    own = np.sort(values)
    after = np.searchsorted(own, brokers, side="right")
    return (after - np.searchsorted(own, brokers, side="left")).astype(np.int64)
