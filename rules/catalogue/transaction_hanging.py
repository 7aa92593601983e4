"""A transaction is open on a partition, and no coordinator will ever end it.

Detects:
    Partitions with an open transaction that no transaction coordinator lists, in two rounds, each
    time as told by the leader after the coordinators had answered.

Why it matters:
    The last stable offset stays at its first offset for ever. read_committed consumers get nothing
    more from the partition, compaction stops there, and nothing ends it by itself.

Inputs:
    DescribeProducers of partitions whose last stable offset has not moved between two rounds (needs
    READ on the topic); ListTransactions and DescribeTransactions of every broker (DESCRIBE on
    `__transaction_state`, so that each coordinator is known). A producer that nobody lists counts
    only if it is proven that every transactional id is visible: no authorizer, ACLs that can be read, or the setting
    `kafka.sees_all_transactional_ids`.

Thresholds:
    Two rounds, in each of which every coordinator answered: requests are not atomic, and what is seen
    in one may end before the next. The second round is made at once. 20 seconds until a partition that could not be observed is UNKNOWN.

False positives:
    None are known. What is not certain is UNKNOWN, and the reason says what is missing.

Runbook:
    First make sure that the application is not about to commit by other means: whatever it wrote in
    this transaction is thrown away. Then run the command in `repair`, which aborts it; Tidemark
    never aborts anything. Behind a password the tool needs `--command-config`. Afterwards the last
    stable offset moves on and the blocked groups go on by themselves. Search for the cause: clients
    or brokers before Kafka 4 without transaction verification
    (`transaction.partition.verification.enable`), or records of `__transaction_state` that were lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, Int64s, marked
from rules.facts.last_observation import microseconds
from rules.facts.transaction_unknown import UnknownReason
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.question import ProducersQuestion
from rules.transactions.blocker_evidence import repair_command, told
from rules.transactions.classes import TransactionClass
from rules.transactions.lso_blocker import LsoBlocker, lso_blockers
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

DESCRIBED_AFTER: Final = timedelta(seconds=20)  # above the default interval of rounds

RULE: Final = RuleMeta(
    rule_id="transaction_hanging",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="A transaction is open that no coordinator will ever end.",
    is_critical=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOT_HELD = "not_held"  # the last stable offset moves, or nothing is open
    WILL_END = "will_end"  # its coordinator knows it
    HANGING = "hanging"
    CONFIRMING = "confirming"  # seen once: the next round decides
    COORDINATOR_NOT_SEEN = "coordinator_not_seen"
    PERMISSION_UNPROVEN = "permission_unproven"  # it may belong to an id that we may not see
    NOT_DESCRIBED = "not_described"
    NOBODY_FOUND = "nobody_found"  # it is, and nobody has a transaction open from there on
    NOT_SEEN = "not_seen"  # the leader did not tell its offsets or its producers


DOUBTS: Final[Mapping[UnknownReason, Why]] = {
    UnknownReason.CONFIRMING: Why.CONFIRMING,
    UnknownReason.COORDINATOR_NOT_SEEN: Why.COORDINATOR_NOT_SEEN,
    UnknownReason.PERMISSION_UNPROVEN: Why.PERMISSION_UNPROVEN,
    UnknownReason.NOT_DESCRIBED: Why.NOT_DESCRIBED,
    UnknownReason.NOBODY_FOUND: Why.NOBODY_FOUND,
}


def judge(view: View) -> Judgement:
    """Judge every partition; the evidence is of the first transaction that hangs there."""
    snapshot, held = view.snapshot, lso_blockers(view)
    hanging = [one for one in held if one.class_ is TransactionClass.HANGING]
    stood = view.is_unchanged_for(view.since(view.memory.last_stable_offset), DESCRIBED_AFTER)
    holders = [one for one in held if _holds(view, one)]
    doubtful = [
        (
            why,
            [
                holder
                for holder in holders
                if holder.unknown_reason is unknown_reason and _counts(view, holder)
            ],
        )
        for unknown_reason, why in DOUBTS.items()
    ]
    by_row: dict[int, list[LsoBlocker]] = {}
    for one in held:
        by_row.setdefault(one.row, []).append(one)
    span = snapshot.offsets.open_span
    is_held = span.valid & (span.values > 0)

    def at(found: Iterable[LsoBlocker]) -> Bools:
        return marked(len(snapshot.partitions), (one.row for one in found))

    def details(position: int) -> dict[str, EvidenceValue]:
        return _told(view, by_row.get(position, []))

    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(at(hanging), Verdict.BREACH, Why.HANGING),
            *(Case(at(found), Verdict.UNKNOWN, why) for why, found in doubtful),
            Case(~span.valid, Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(is_held & _should_be_known(view, stood), Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(at(held), Verdict.OK, Why.WILL_END),
        ],
        (Verdict.OK, Why.NOT_HELD),
        {
            "last_stable_offset": snapshot.offsets.last_stable_offset,
            "high_watermark": snapshot.offsets.high_watermark,
            "open_span": span,
        },
        details=details,
        questions=_questions(view, holders),
    )


def _holds(view: View, held: LsoBlocker) -> bool:
    """Whether it is what the last stable offset waits at.

    What begins behind it between two requests of a round is on no list yet, and is not in doubt for
    that. It is told if it hangs.
    """
    stable = view.snapshot.offsets.last_stable_offset[held.row]
    start = held.start_offset
    return start is None or (stable is not None and start <= stable)


def _counts(view: View, held: LsoBlocker) -> bool:
    """Whether a doubt makes the partition UNKNOWN: who is gone soon leaves a short one."""
    if held.unknown_reason is not UnknownReason.NOBODY_FOUND or held.first_seen_us is None:
        return True
    age_us = microseconds(view.now) - held.first_seen_us
    return age_us >= DESCRIBED_AFTER // timedelta(microseconds=1)


def _should_be_known(view: View, stood: Bools) -> Bools:
    """Mark the held partitions whose leader should have been heard by now, and was not.

    A partition on which a transaction was seen open stays unknown until it is observed again.
    """
    snapshot = view.snapshot
    seen = [
        snapshot.partitions.index.row(sighting.row_name.topic, sighting.row_name.partition)
        for sighting in view.memory.transactions.sightings.values()
    ]
    was_open = marked(len(snapshot.partitions), [row for row in seen if row is not None])
    unknown: Bools = ~snapshot.producers.observed & (stood | was_open)
    return unknown


def _told(view: View, held: list[LsoBlocker]) -> dict[str, EvidenceValue]:
    hanging = [one for one in held if one.class_ is TransactionClass.HANGING]
    chosen = next(iter(hanging or held), None)
    if chosen is None:
        return {}
    found = told(view.snapshot, chosen, view.now)
    if hanging:
        found["hanging_transactions"] = len(hanging)
        found["repair"] = repair_command(view.snapshot, chosen)
    return found


def _questions(view: View, held: Iterable[LsoBlocker]) -> tuple[ProducersQuestion, ...]:
    """Ask at once again about what was seen for the first time."""
    rows: Int64s = np.array(
        sorted({one.row for one in held if one.unknown_reason is UnknownReason.CONFIRMING}),
        np.int64,
    )
    if not len(rows):
        return ()
    return (ProducersQuestion(view.snapshot.partitions, rows, is_urgent=True),)
