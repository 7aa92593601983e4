"""A read_committed group has read all that it can and waits for a transaction to end.

Detects:
    Groups that have read everything up to a last stable offset which does not move, with more
    behind it, where the transaction that holds it is not simply open within its timeout.

Why it matters:
    The pipeline does not move at this point. Restarting the consumer changes nothing; a consumer's
    own lag metric shows 0, because it counts up to the last stable offset.

Inputs:
    Commits, last stable offset and high watermark; who holds it (DescribeProducers and the
    coordinators). A group's isolation level cannot be asked: it is taken for read_committed unless it
    has committed beyond the last stable offset. For a small lag: whether there is anything to read.

Thresholds:
    1 minute since the last stable offset stopped, 2 minutes where nobody can tell who holds it. A
    transaction that hangs never ends: its groups are told at once. One that is within its own
    timeout is no breach here; after 2 minutes last_stable_offset_stuck tells it. One that is decided
    is told when its marker has been missing for half a minute, however long it was open before.

False positives:
    A read_uncommitted group that is exactly at the last stable offset for another reason.

Runbook:
    Reason `hanging`: run the command in `repair` of the finding transaction_hanging for this
    partition. Reason `overdue`: its coordinator ends it (rule transaction_overdue). Reason
    `marker_stuck`: bring the replicas of the partition back (rule transaction_marker_stuck). Reason
    `holder_not_known`: somebody holds it whose transactional id Tidemark may not see. Reason
    `holder_not_seen`: give Tidemark READ on the topic; the gaps of the round say what was rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, Column, marked
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_unknown import UnknownReason
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.question import SMALL_LAG
from rules.transactions.blocker_evidence import holder_evidence
from rules.transactions.classes import TransactionClass
from rules.transactions.decided import MarkerDelay, decided_since_us, marker_delay
from rules.transactions.lso_blocker import LsoBlocker, lso_blockers
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

UNCHANGED: Final = timedelta(minutes=1)
UNCHANGED_UNKNOWN: Final = timedelta(minutes=2)

RULE: Final = RuleMeta(
    rule_id="read_committed_consumers_blocked",
    subject=SubjectKind.COMMIT,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="A read_committed group waits for a transaction to end.",
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_HELD = "nothing_held"
    READS_UNCOMMITTED = "reads_uncommitted"  # it has committed beyond the last stable offset
    HAS_MORE_TO_READ = "has_more_to_read"  # before the transaction
    NOT_FOR_LONG = "not_for_long"
    OPEN_IN_TIME = "open_in_time"  # the transaction is within its timeout, or without one by design
    BEING_WRITTEN = "being_written"  # it is decided: its marker comes soon
    HANGING = "hanging"
    OVERDUE = "overdue"
    MARKER_STUCK = "marker_stuck"
    HOLDER_NOT_KNOWN = "holder_not_known"
    HOLDER_NOT_SEEN = "holder_not_seen"  # the leader or a coordinator gave no answer
    END_NOT_SEEN = "end_not_seen"
    NOT_DETERMINED = "not_determined"  # it may have more to read: the log was not inspected


HOLDERS: Final[Mapping[TransactionClass, Why]] = {
    TransactionClass.OPEN: Why.OPEN_IN_TIME,
    TransactionClass.TWO_PHASE_COMMIT: Why.OPEN_IN_TIME,
    TransactionClass.HANGING: Why.HANGING,
    TransactionClass.OVERDUE: Why.OVERDUE,
    TransactionClass.PREPARE_COMMIT: Why.MARKER_STUCK,
    TransactionClass.PREPARE_ABORT: Why.MARKER_STUCK,
    TransactionClass.MARKER_NOT_REPLICATED: Why.MARKER_STUCK,
}


NOT_SEEN: Final = (Verdict.UNKNOWN, Why.HOLDER_NOT_SEEN)
BEING_WRITTEN: Final = (Verdict.OK, Why.BEING_WRITTEN)

# Doubts that another round may settle; without a permission it stays unknown who holds.
TRANSIENT: Final = (
    UnknownReason.CONFIRMING,
    UnknownReason.COORDINATOR_NOT_SEEN,
    UnknownReason.NOT_DESCRIBED,
)


def judge(view: View) -> Judgement:
    """Judge every commit that says what is read next; a share group's start offset does not."""
    snapshot, held = view.snapshot, _holders(view)
    places = snapshot.offset_commits
    row = snapshot.commits.row[places]
    lag = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    nothing = snapshot.commits.nothing_to_read.take(places)
    span = snapshot.offsets.open_span.take(row)
    since = view.since(view.memory.last_stable_offset).take(row)
    has_no_information: Bools = nothing.valid & (nothing.values == 1)
    has_read_all = lag.valid & ((lag.values == 0) | has_no_information)
    may_have_read_all = lag.valid & (lag.values <= SMALL_LAG) & ~nothing.valid

    def by(why: Why) -> Bools:
        return _rows_held_by(snapshot, held, why)[row]

    def details(position: int) -> dict[str, EvidenceValue]:
        holder = held.get(int(row[position]))
        return {} if holder is None else _told(view, holder)

    return decide(
        RULE,
        CommitSubjects(snapshot, places),
        [
            Case(~span.valid, Verdict.UNKNOWN, Why.END_NOT_SEEN),
            Case(span.values == 0, Verdict.OK, Why.NOTHING_HELD),
            Case(~lag.valid, Verdict.OK, Why.READS_UNCOMMITTED),
            Case(~(has_read_all | may_have_read_all), Verdict.OK, Why.HAS_MORE_TO_READ),
            Case(by(Why.OPEN_IN_TIME), Verdict.OK, Why.OPEN_IN_TIME),
            Case(by(Why.HANGING) & has_read_all, Verdict.BREACH, Why.HANGING),
            Case(_is_not_seen(view, held)[row], *NOT_SEEN),
            Case(~view.is_unchanged_for(since, UNCHANGED), Verdict.OK, Why.NOT_FOR_LONG),
            Case(_is_delayed(view, held, MarkerDelay.FIRST_OBSERVATION)[row], *NOT_SEEN),
            Case(_is_delayed(view, held, MarkerDelay.BEING_WRITTEN)[row], *BEING_WRITTEN),
            Case(may_have_read_all & ~has_read_all, Verdict.UNKNOWN, Why.NOT_DETERMINED),
            Case(by(Why.OVERDUE), Verdict.BREACH, Why.OVERDUE),
            Case(by(Why.MARKER_STUCK), Verdict.BREACH, Why.MARKER_STUCK),
            Case(~view.is_unchanged_for(since, UNCHANGED_UNKNOWN), Verdict.OK, Why.NOT_FOR_LONG),
        ],
        (Verdict.BREACH, Why.HOLDER_NOT_KNOWN),
        {
            "committed_offset": Column.known(snapshot.commits.committed_offset[places]),
            "blocked_offsets": span,
            "unchanged_ms": view.unchanged_ms(since),
        },
        details=details,
    )


def _holders(view: View) -> dict[int, LsoBlocker]:
    """Return by row what holds the last stable offset itself: the first of the hold-ups there."""
    blockers: dict[int, LsoBlocker] = {}
    for blocker in lso_blockers(view):
        stable = view.snapshot.offsets.last_stable_offset[blocker.row]
        if stable is not None and (blocker.start_offset is None or blocker.start_offset <= stable):
            blockers.setdefault(blocker.row, blocker)
    return blockers


def _is_not_seen(view: View, held: Mapping[int, LsoBlocker]) -> Bools:
    """Mark the partitions of which this round could not tell who holds them, and should have.

    An observation that failed is no reason to call a group blocked, or to say that it is not any more.
    """
    snapshot = view.snapshot
    unknown = ~snapshot.producers.observed
    for row, one in held.items():
        unknown[row] |= one.unknown_reason in TRANSIENT
    stood = view.is_unchanged_for(view.since(view.memory.last_stable_offset), UNCHANGED)
    for seen in view.memory.transactions.sightings.values():
        row_seen = snapshot.partitions.index.row(seen.row_name.topic, seen.row_name.partition)
        if row_seen is not None:
            stood[row_seen] = True
    missing: Bools = unknown & stood
    return missing


def _is_delayed(view: View, held: Mapping[int, LsoBlocker], delay: MarkerDelay) -> Bools:
    """Mark the partitions whose holder is decided, as far as is seen, and waits so for its marker."""
    rows = (
        row
        for row, one in held.items()
        if HOLDERS.get(one.class_) is Why.MARKER_STUCK
        or one.unknown_reason is UnknownReason.NOBODY_FOUND
        if (since := decided_since_us(view, one)) is not None
        if marker_delay(view, since) is delay
    )
    return marked(len(view.snapshot.partitions), rows)


def _rows_held_by(snapshot: Snapshot, held: Mapping[int, LsoBlocker], why: Why) -> Bools:
    rows = (row for row, one in held.items() if HOLDERS.get(one.class_) is why)
    return marked(len(snapshot.partitions), rows)


def _told(view: View, holder: LsoBlocker) -> dict[str, EvidenceValue]:
    """Return who holds it; the other groups are in the findings of the transaction."""
    return holder_evidence(holder, view.now)
