"""The log end runs ahead of a high watermark that does not move.

Detects:
    Partitions with followers whose high watermark has not moved for a while although the leader
    has written beyond it.

Why it matters:
    What lies between high watermark and log end exists on too few replicas. No consumer sees it,
    and it is gone if the leader dies now. Nobody shows this gap, because an ordinary client is
    never told the log end offset.

Inputs:
    High watermark and log end offset (ListOffsets, replica id -2); since when the high watermark
    has stood while the log end was ahead of it, carried from round to round.
    Brokers before Kafka 2.8 tell no topic ids: a topic that was created again under its name is then
    taken for the same one.

Thresholds:
    30 s, Kafka's default `replica.lag.time.max.ms`: by then a follower that cannot keep up has left
    the ISR and the high watermark moves on, unless `min.insync.replicas` forbids it.

False positives:
    None known; with one replica there is no follower to wait for, and the rule does not apply.

Runbook:
    Observe the followers' log ends (`tidemark collect --once --replicas --topics ...`): the ones that
    stand still are the cause. Keep the leader alive until they have caught up; do not restart it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

UNCHANGED: Final = timedelta(seconds=30)

RULE: Final = RuleMeta(
    rule_id="high_watermark_stuck",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="The log end runs ahead of a high watermark that does not move.",
    is_critical=True,
)


class Why(Reason):
    """Reasons of this rule."""

    LEVEL = "level"
    REPLICATING = "replicating"  # ahead, but not for long
    UNCHANGED = "unchanged"
    ONE_REPLICA = "one_replica"
    NOT_SEEN = "not_seen"


def judge(view: View) -> Judgement:
    """Judge every partition."""
    snapshot = view.snapshot
    ahead, since = snapshot.offsets.unreplicated_span, view.since(view.memory.high_watermark)
    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(snapshot.partitions.replicas.lengths == 1, Verdict.OK, Why.ONE_REPLICA),
            Case(~ahead.valid, Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(ahead.values == 0, Verdict.OK, Why.LEVEL),
            Case(view.is_unchanged_for(since, UNCHANGED), Verdict.BREACH, Why.UNCHANGED),
        ],
        (Verdict.OK, Why.REPLICATING),
        {
            "high_watermark": snapshot.offsets.high_watermark,
            "log_end_offset": snapshot.offsets.log_end_offset,
            "unreplicated_span": ahead,
            "unchanged_ms": view.unchanged_ms(since),
        },
    )
