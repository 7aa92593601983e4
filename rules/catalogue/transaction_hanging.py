"""A transaction is open on a partition, and no coordinator will ever end it.

Detects:
    Partitions with an open transaction that no transaction coordinator lists, in two rounds; in
    each of them the leader reported the transaction after the coordinators had answered.

Why it matters:
    The last stable offset stays at the transaction's first offset for good. read_committed
    consumers receive nothing more from the partition, compaction stops there, and nothing ends the
    transaction by itself.

Inputs:
    DescribeProducers of partitions whose last stable offset has not advanced between two rounds
    (needs READ on the topic); ListTransactions and DescribeTransactions of every broker (DESCRIBE
    on `__transaction_state`, so that each coordinator is known). A producer that no coordinator
    lists counts only if every transactional id is proven to be visible: there is no authorizer, the
    ACLs can be read, or `kafka.sees_all_transactional_ids` is set.

Thresholds:
    Two rounds in each of which every coordinator answered: the requests are not atomic, and a
    transaction that is seen in one round may end before the next. The second round follows at once.
    A partition that could not be observed is UNKNOWN after 20 seconds.

False positives:
    None known. What is not certain is UNKNOWN, and the reason says what is missing.

Runbook:
    First make sure that the application does not intend to commit by other means: the records of
    this transaction will be discarded. Then run the command in `repair`, which aborts the
    transaction; Tidemark never aborts one. If the cluster requires authentication, add
    `--command-config`. Afterwards the last stable offset advances, and the blocked groups continue
    by themselves.

    Then search for the cause: clients or brokers before Kafka 4 without transaction verification
    (`transaction.partition.verification.enable`), or lost records of `__transaction_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, Int64s, marked
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.facts.transaction_unknown import UnknownReason
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.question import ProducersQuestion
from rules.transactions.blocker_evidence import blocker_evidence, repair_command
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
    PERMISSION_UNPROVEN = "permission_unproven"  # its transactional id may be hidden from Tidemark
    NOT_DESCRIBED = "not_described"
    NOBODY_FOUND = "nobody_found"  # blocked, and no producer has a transaction open from there on
    NOT_SEEN = "not_seen"  # the leader did not return its offsets or its producers


DOUBTS: Final = {reason: Why(reason.value) for reason in UnknownReason}


def judge(view: View) -> Judgement:
    """Judge every partition; the evidence is of the first transaction that hangs there."""
    snapshot, held = view.snapshot, lso_blockers(view)
    hanging = [blocker for blocker in held if blocker.class_ is TransactionClass.HANGING]
    stood = view.is_unchanged_for(view.since(view.memory.last_stable_offset), DESCRIBED_AFTER)
    holders = [blocker for blocker in held if _holds(view, blocker)]
    by_row: dict[int, list[LsoBlocker]] = {}
    for blocker in held:
        by_row.setdefault(blocker.row, []).append(blocker)
    span = snapshot.offsets.open_span
    is_held = span.valid & (span.values > 0)

    def at(blockers: Iterable[LsoBlocker]) -> Bools:
        return marked(len(snapshot.partitions), (blocker.row for blocker in blockers))

    def details(position: int) -> dict[str, EvidenceValue]:
        return _row_evidence(view, by_row.get(position, []))

    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(at(hanging), Verdict.BREACH, Why.HANGING),
            *(
                Case(at(_unknown(view, holders, reason)), Verdict.UNKNOWN, why)
                for reason, why in DOUBTS.items()
            ),
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
        questions=_request_confirmation(view, holders),
    )


def _holds(view: View, held: LsoBlocker) -> bool:
    """Whether the last stable offset waits at this transaction.

    A transaction that began beyond it between two requests of a round may be on no list yet: it makes
    the partition UNKNOWN only once it hangs.
    """
    stable = view.snapshot.offsets.last_stable_offset[held.row]
    start = held.start_offset
    return start is None or (stable is not None and start <= stable)


def _unknown(
    view: View, holders: Iterable[LsoBlocker], reason: UnknownReason
) -> Iterator[LsoBlocker]:
    """Yield the blockers that make their partitions UNKNOWN for one reason."""
    return (
        holder for holder in holders if holder.unknown_reason is reason and _counts(view, holder)
    )


def _counts(view: View, held: LsoBlocker) -> bool:
    """Whether the unknown blocker makes the partition UNKNOWN; one without a producer only after 20 s."""
    if held.unknown_reason is not UnknownReason.NOBODY_FOUND or held.first_seen_us is None:
        return True
    age_us = microseconds(view.now) - held.first_seen_us
    return age_us >= DESCRIBED_AFTER // MICROSECOND


def _should_be_known(view: View, stood: Bools) -> Bools:
    """Mark the partitions whose leader should have answered DescribeProducers by now, and has not.

    A partition on which an open transaction was observed stays unknown until it is observed again.
    """
    snapshot = view.snapshot
    seen = [
        snapshot.partitions.index.row(sighting.row_name.topic, sighting.row_name.partition)
        for sighting in view.memory.transactions.sightings.values()
    ]
    was_open = marked(len(snapshot.partitions), [row for row in seen if row is not None])
    unknown: Bools = ~snapshot.producers.observed & (stood | was_open)
    return unknown


def _row_evidence(view: View, held: list[LsoBlocker]) -> dict[str, EvidenceValue]:
    hanging = [blocker for blocker in held if blocker.class_ is TransactionClass.HANGING]
    chosen = next(iter(hanging or held), None)
    if chosen is None:
        return {}
    evidence = blocker_evidence(view.snapshot, chosen, view.now)
    if hanging:
        evidence["hanging_transactions"] = len(hanging)
        evidence["repair"] = repair_command(view.snapshot, chosen)
    return evidence


def _request_confirmation(view: View, held: Iterable[LsoBlocker]) -> tuple[ProducersQuestion, ...]:
    """Request the producers again at once, where a transaction was observed for the first time."""
    rows: Int64s = np.array(
        sorted(
            {blocker.row for blocker in held if blocker.unknown_reason is UnknownReason.CONFIRMING}
        ),
        np.int64,
    )
    if not len(rows):
        return ()
    return (ProducersQuestion(view.snapshot.partitions, rows, is_urgent=True),)
