"""A transaction is decided, but its marker is not written or not replicated.

Detects:
    Partitions that wait for the commit or abort marker of a transaction that its coordinator has
    decided, and partitions whose marker is written but not replicated.

Why it matters:
    The producer's commit has succeeded. read_committed consumers see nothing of it, nor of anything
    beyond it, until the marker is replicated.

Inputs:
    ListTransactions and DescribeTransactions of every broker: a decided transaction lists the
    partitions whose marker is missing. DescribeProducers of the blocked partitions: no producer has
    an open transaction, and the high watermark has not reached the log end offset.

Thresholds:
    30 seconds since the round that first saw the decision, and still waiting in this round: a
    coordinator writes markers within milliseconds and retries at once, and a restarted leader is
    back or replaced by then. For how long the transaction was open before does not count.

False positives:
    A coordinator that was busy with very many partitions.

Runbook:
    Do not abort anything by hand: the outcome is decided already.

    - `prepare_commit`, `prepare_abort`: the coordinator cannot write to the leader of this
      partition. Check whether the partition is offline or has fewer in-sync replicas than
      `min.insync.replicas` (rules partition_offline, partition_under_min_isr), and bring its
      replicas back: the marker follows by itself.
    - `not_replicated`: the leader has the marker and its followers do not (rule
      high_watermark_stuck).
"""

from __future__ import annotations

from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, marked
from rules.facts.last_observation import microseconds
from rules.facts.marker_waits import rows_held_by_nobody
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_memory import SeenTransaction
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.transactions.blocked import blocked_groups, shown
from rules.transactions.blocker_evidence import of_transaction
from rules.transactions.classes import TransactionClass, class_of
from rules.transactions.decided import STUCK, MarkerDelay, marker_delay
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="transaction_marker_stuck",
    subject=SubjectKind.PARTITION,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    summary="A transaction is decided, but its marker is not written or not replicated.",
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_DUE = "nothing_due"
    BEING_WRITTEN = "being_written"
    # Since when it waits is not known: Tidemark has just started
    FIRST_OBSERVATION = "first_observation"
    PREPARE_COMMIT = "prepare_commit"
    PREPARE_ABORT = "prepare_abort"
    NOT_REPLICATED = "not_replicated"
    COORDINATOR_NOT_SEEN = "coordinator_not_seen"  # a marker was due at the last observation
    NOT_DESCRIBED = "not_described"  # the same
    NOT_SEEN = "not_seen"  # the leader did not return its offsets or its producers


_DELAYS: Final = {
    MarkerDelay.BEING_WRITTEN: Why.BEING_WRITTEN,
    MarkerDelay.FIRST_OBSERVATION: Why.FIRST_OBSERVATION,
}


def judge(view: View) -> Judgement:
    """Judge every partition; the evidence is of the transaction that waits longest there."""
    snapshot = view.snapshot
    waiting = _waiting(view)
    unchanged = view.is_unchanged_for(view.since(view.memory.last_stable_offset), STUCK)
    reasons = _unreplicated(view) | {row: _why(view, seen) for row, seen in waiting.items()}

    def at(why: Why) -> Bools:
        return marked(
            len(snapshot.partitions), (row for row, reason in reasons.items() if reason is why)
        )

    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(at(Why.PREPARE_COMMIT), Verdict.BREACH, Why.PREPARE_COMMIT),
            Case(at(Why.PREPARE_ABORT), Verdict.BREACH, Why.PREPARE_ABORT),
            Case(at(Why.NOT_REPLICATED), Verdict.BREACH, Why.NOT_REPLICATED),
            Case(at(Why.COORDINATOR_NOT_SEEN), Verdict.UNKNOWN, Why.COORDINATOR_NOT_SEEN),
            Case(at(Why.NOT_DESCRIBED), Verdict.UNKNOWN, Why.NOT_DESCRIBED),
            Case(at(Why.FIRST_OBSERVATION), Verdict.UNKNOWN, Why.FIRST_OBSERVATION),
            Case(at(Why.BEING_WRITTEN), Verdict.OK, Why.BEING_WRITTEN),
            Case(unchanged & _is_not_seen(snapshot), Verdict.UNKNOWN, Why.NOT_SEEN),
        ],
        (Verdict.OK, Why.NOTHING_DUE),
        {
            "last_stable_offset": snapshot.offsets.last_stable_offset,
            "high_watermark": snapshot.offsets.high_watermark,
            "log_end_offset": snapshot.offsets.log_end_offset,
        },
        details=lambda row: _row_evidence(view, row, waiting.get(row)),
    )


def _is_not_seen(snapshot: Snapshot) -> Bools:
    """Mark the partitions for which it is not known whether a marker waits to be replicated."""
    offsets = snapshot.offsets
    unseen: Bools = (
        ~snapshot.producers.observed | ~offsets.open_span.valid | ~offsets.unreplicated_span.valid
    )
    return unseen


def _unreplicated(view: View) -> dict[int, Why]:
    """Return the reasons of the rows whose marker is written but not replicated."""
    snapshot = view.snapshot
    waits = view.memory.transactions.markers
    return {
        row: _DELAYS.get(
            marker_delay(view, waits[snapshot.partitions.index.topic_partition(row)].since_us),
            Why.NOT_REPLICATED,
        )
        for row, _ in rows_held_by_nobody(snapshot)
        if snapshot.offsets.unreplicated_span[row]
    }


def _waiting(view: View) -> dict[int, SeenTransaction]:
    """Return by row the decided transaction that has waited longest for its marker there."""
    index = view.snapshot.partitions.index
    transactions: dict[int, SeenTransaction] = {}
    decided = [
        seen
        for seen in view.memory.transactions.open.values()
        if class_of(seen.transaction, view.now)
        in (TransactionClass.PREPARE_COMMIT, TransactionClass.PREPARE_ABORT)
    ]
    for seen in sorted(decided, key=lambda seen: seen.state_since_us):
        for name in seen.transaction.partitions or ():
            row = index.row(name.topic, name.partition)
            if row is not None:
                transactions.setdefault(row, seen)
    return transactions


def _why(view: View, seen: SeenTransaction) -> Why:
    if not seen.is_seen:
        return Why.COORDINATOR_NOT_SEEN
    if not seen.is_described:
        return Why.NOT_DESCRIBED
    delay = marker_delay(view, seen.state_since_us)
    if delay in _DELAYS:
        return _DELAYS[delay]
    class_ = class_of(seen.transaction, view.now)
    is_commit = class_ is TransactionClass.PREPARE_COMMIT
    return Why.PREPARE_COMMIT if is_commit else Why.PREPARE_ABORT


def _row_evidence(view: View, row: int, seen: SeenTransaction | None) -> dict[str, EvidenceValue]:
    """Return the transaction that waits longest, if its coordinator shows it, and whom it blocks."""
    waits = _unreplicated_evidence(view, row) if seen is None else _transaction_evidence(view, seen)
    stable = view.snapshot.offsets.last_stable_offset[row]
    blocked = {} if stable is None else shown(blocked_groups(view.snapshot, row, stable))
    return {**waits, **blocked}


def _unreplicated_evidence(view: View, row: int) -> dict[str, EvidenceValue]:
    name = view.snapshot.partitions.index.topic_partition(row)
    seen = view.memory.transactions.markers.get(name)
    return {} if seen is None else {"decided_ms": _ms_since(view, seen.since_us)}


def _ms_since(view: View, timestamp_us: int) -> int:
    return (microseconds(view.now) - timestamp_us) // 1000


def _transaction_evidence(view: View, seen: SeenTransaction) -> dict[str, EvidenceValue]:
    decided = {"decided_ms": _ms_since(view, seen.state_since_us)}
    return {**of_transaction(seen.transaction, view.now), **decided}
