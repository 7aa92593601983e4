"""A read_committed group has read all that it can and waits for a transaction to end.

Detects:
    Groups that have read everything up to a last stable offset that does not advance, with more
    records beyond it, where the transaction that blocks it is not simply open within its timeout.

Why it matters:
    The pipeline has stopped at this offset. Restarting the consumer changes nothing, and the
    consumer's own lag metric is 0, because it counts up to the last stable offset.

Inputs:
    Committed offsets, last stable offset and high watermark; the transaction that blocks the last
    stable offset (DescribeProducers and the transaction coordinators). For a small lag: whether
    there is anything to read. Kafka does not report a group's isolation level: a group counts as
    read_committed unless it has committed beyond the last stable offset.

Thresholds:
    1 minute since the last stable offset stopped, 2 minutes where the blocking transaction is not
    known. A hanging transaction never ends: its groups are reported at once. A transaction within
    its own timeout is no breach here; after 2 minutes last_stable_offset_stuck reports it. A
    decided transaction is reported when its marker has been missing for half a minute, however long
    it was open before.

False positives:
    A read_uncommitted group that is exactly at the last stable offset for another reason.

Runbook:
    - `hanging`: run the command in `repair` of the finding transaction_hanging of this partition.
    - `overdue`: the coordinator aborts the transaction (rule transaction_overdue).
    - `marker_stuck`: bring the replicas of the partition back (rule transaction_marker_stuck).
    - `holder_not_known`: the transaction belongs to a transactional id that Tidemark may not see.
    - `holder_not_seen`: grant Tidemark READ on the topic; the gaps of the round say which request
      failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, Column, Int64s, marked
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_unknown import UnknownReason
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.owners import owner_evidence
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
    summary="A read_committed group waits for a transaction to end.",
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_HELD = "nothing_held"
    READS_UNCOMMITTED = "reads_uncommitted"  # it has committed beyond the last stable offset
    HAS_MORE_TO_READ = "has_more_to_read"  # before the transaction
    NOT_FOR_LONG = "not_for_long"
    OPEN_IN_TIME = "open_in_time"  # the transaction is within its timeout, or without one by design
    BEING_WRITTEN = "being_written"  # the transaction is decided: its marker follows soon
    HANGING = "hanging"
    OVERDUE = "overdue"
    MARKER_STUCK = "marker_stuck"
    HOLDER_NOT_KNOWN = "holder_not_known"
    HOLDER_NOT_SEEN = "holder_not_seen"  # the leader or a coordinator did not answer
    END_NOT_SEEN = "end_not_seen"
    NOT_DETERMINED = "not_determined"  # there may be more to read: the log was not read


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

# Reasons that another round may resolve; a missing permission stays.
TRANSIENT: Final = (
    UnknownReason.CONFIRMING,
    UnknownReason.COORDINATOR_NOT_SEEN,
    UnknownReason.NOT_DESCRIBED,
)


def judge(view: View) -> Judgement:
    """Judge every commit, without share groups: their start offset is no position."""
    snapshot, held = view.snapshot, _holders(view)
    places = snapshot.offset_commits
    row = snapshot.commits.row[places]
    lag = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    span = snapshot.offsets.open_span.take(row)
    since = view.since(view.memory.last_stable_offset).take(row)
    has_read_all, may_have_read_all = _read_all(snapshot, places, lag)

    def by(why: Why) -> Bools:
        return _rows_held_by(snapshot, held, why)[row]

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
            Case(may_have_read_all, Verdict.UNKNOWN, Why.NOT_DETERMINED),
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
        details=lambda position: {
            **_blocker_evidence(view, held.get(int(row[position]))),
            **owner_evidence(
                snapshot, int(snapshot.commits.group[places[position]]), int(row[position])
            ),
        },
    )


def _read_all(snapshot: Snapshot, places: Int64s, lag: Column) -> tuple[Bools, Bools]:
    """Mark the commits with nothing to read below the LSO, and those of which that is not determined."""
    nothing = snapshot.commits.nothing_to_read.take(places)
    has_no_information: Bools = nothing.valid & (nothing.values == 1)
    has_read_all: Bools = lag.valid & ((lag.values == 0) | has_no_information)
    may_have_read_all: Bools = lag.valid & (lag.values <= SMALL_LAG) & ~nothing.valid
    return has_read_all, may_have_read_all & ~has_read_all


def _holders(view: View) -> dict[int, LsoBlocker]:
    """Return by row the transaction that blocks the last stable offset itself."""
    blockers: dict[int, LsoBlocker] = {}
    for blocker in lso_blockers(view):
        stable = view.snapshot.offsets.last_stable_offset[blocker.row]
        if stable is not None and (blocker.start_offset is None or blocker.start_offset <= stable):
            blockers.setdefault(blocker.row, blocker)
    return blockers


def _is_not_seen(view: View, held: Mapping[int, LsoBlocker]) -> Bools:
    """Mark the partitions whose blocking transaction should be known by now, and is not.

    A failed observation is no reason to report a group as blocked, or as not blocked any more.
    """
    snapshot = view.snapshot
    unknown = ~snapshot.producers.observed
    for row, blocker in held.items():
        unknown[row] |= blocker.unknown_reason in TRANSIENT
    stood = view.is_unchanged_for(view.since(view.memory.last_stable_offset), UNCHANGED)
    for seen in view.memory.transactions.sightings.values():
        row_seen = snapshot.partitions.index.row(seen.row_name.topic, seen.row_name.partition)
        if row_seen is not None:
            stood[row_seen] = True
    missing: Bools = unknown & stood
    return missing


def _is_delayed(view: View, held: Mapping[int, LsoBlocker], delay: MarkerDelay) -> Bools:
    """Mark the partitions whose blocking transaction is decided and whose marker is `delay`."""
    rows = (
        row
        for row, blocker in held.items()
        if HOLDERS.get(blocker.class_) is Why.MARKER_STUCK
        or blocker.unknown_reason is UnknownReason.NOBODY_FOUND
        if (since := decided_since_us(view, blocker)) is not None
        if marker_delay(view, since) is delay
    )
    return marked(len(view.snapshot.partitions), rows)


def _rows_held_by(snapshot: Snapshot, held: Mapping[int, LsoBlocker], why: Why) -> Bools:
    rows = (row for row, blocker in held.items() if HOLDERS.get(blocker.class_) is why)
    return marked(len(snapshot.partitions), rows)


def _blocker_evidence(view: View, holder: LsoBlocker | None) -> dict[str, EvidenceValue]:
    """Return the blocking transaction, if it is known; the other groups are in its own findings."""
    return {} if holder is None else holder_evidence(holder, view.now)
