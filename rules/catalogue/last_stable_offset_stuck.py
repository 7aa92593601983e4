"""The high watermark is ahead of a last stable offset that does not advance.

Detects:
    Partitions whose last stable offset has not advanced for a while although records beyond it are
    replicated: a transaction is open and is neither committed nor aborted.

Why it matters:
    read_committed consumers stop at the last stable offset. Everything beyond it waits, committed
    or not, while consumer lag measured against the high watermark suggests a slow consumer.

Inputs:
    Last stable offset and high watermark; since when the former has been unchanged while the latter
    was ahead of it, which is kept from round to round. Where brokers return no topic ids (before
    Kafka 2.8), a topic that was created again counts as the same topic.

Thresholds:
    2 minutes: the default transaction timeout of a producer is 60 s, and the coordinator aborts at
    most 10 s later, so that the transaction of a producer that merely crashed has ended by then.

False positives:
    Transactions that are long on purpose, such as Flink checkpoints of many minutes.

Runbook:
    Find the transaction: `kafka-transactions.sh describe-producers --topic T --partition P` shows
    the producer id whose transaction starts at the last stable offset. If its coordinator lists the
    transaction, it is aborted at its timeout. If not, it hangs (rule transaction_hanging) and has
    to be aborted by hand.
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
