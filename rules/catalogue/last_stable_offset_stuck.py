"""The high watermark runs ahead of a last stable offset that does not move.

Detects:
    Partitions whose last stable offset has not moved for a while although records beyond it are
    replicated: a transaction is open and is neither committed nor aborted.

Why it matters:
    read_committed consumers stop at the last stable offset. Everything behind it waits, committed
    or not, while consumer lag measured against the high watermark resembles slowness.

Inputs:
    Last stable offset and high watermark; since when the former has stood while the latter was
    ahead of it, carried from round to round.
    Brokers before Kafka 2.8 tell no topic ids: a topic that was created again under its name is then
    taken for the same one.

Thresholds:
    2 minutes: a producer's default transaction timeout is 60 s, and the coordinator aborts at most
    10 s after it, so that an ordinary crashed producer is over by then.

False positives:
    Transactions that are long on purpose (Flink checkpoints of many minutes).

Runbook:
    Find the transaction: `kafka-transactions.sh describe-producers --topic T --partition P` names the
    producer id whose transaction starts at the last stable offset. If its coordinator knows it, it
    will be aborted at its timeout. If not, it hangs and has to be aborted by hand.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

UNCHANGED: Final = timedelta(minutes=2)

RULE: Final = RuleMeta(
    rule_id="last_stable_offset_stuck",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="An open transaction holds the last stable offset back.",
    is_critical=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_OPEN = "nothing_open"
    OPEN = "open"  # a transaction is open, but not for long
    UNCHANGED = "unchanged"
    NOT_SEEN = "not_seen"


def judge(view: View) -> Judgement:
    """Judge every partition."""
    offsets = view.snapshot.offsets
    held, since = offsets.open_span, view.since(view.memory.last_stable_offset)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(~held.valid, Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(held.values == 0, Verdict.OK, Why.NOTHING_OPEN),
            Case(view.is_unchanged_for(since, UNCHANGED), Verdict.BREACH, Why.UNCHANGED),
        ],
        (Verdict.OK, Why.OPEN),
        {
            "last_stable_offset": offsets.last_stable_offset,
            "high_watermark": offsets.high_watermark,
            "open_span": held,
            "unchanged_ms": view.unchanged_ms(since),
        },
    )
