"""The log end offset is ahead of a high watermark that does not advance.

Detects:
    Partitions with followers whose high watermark has not advanced for a while although the leader
    has written beyond it.

Why it matters:
    The records between high watermark and log end offset are on too few replicas. No consumer sees
    them, and they are lost if the leader fails now. Ordinary tools do not show this span, because a
    client never gets the log end offset.

Inputs:
    High watermark and log end offset (ListOffsets with replica id -2); since when the high
    watermark has been unchanged while the log end offset was ahead of it, which is kept from round
    to round. Where brokers return no topic ids (before Kafka 2.8), a topic that was created again
    counts as the same topic.

Thresholds:
    30 s, Kafka's default `replica.lag.time.max.ms`: by then a follower that cannot keep up has left
    the ISR and the high watermark advances, unless `min.insync.replicas` prevents it.

False positives:
    None known. With one replica there is no follower to wait for, and the rule does not apply.

Runbook:
    Compare the log end offsets of the followers (`tidemark collect --once --replicas --topics
    ...`): the ones that do not advance are the cause. Keep the leader alive until they have caught
    up; do not restart it.
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
    summary="The log end offset is ahead of a high watermark that does not advance.",
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
