"""Committed records are gone after a leader change: proven.

Detects:
    Partitions whose present leader's log ends, for the leader epoch of the last observation, below
    the high watermark that was observed in that epoch.

Why it matters:
    Producers got an acknowledgement for these records, and consumers may have read them. Nothing
    else shows the loss: the log grows on, an idempotent Java producer without transactions gets no
    error, and consumers continue at their offsets.

Inputs:
    The last observation of each partition before its leader epoch changed (topic id, leader epoch,
    last stable offset, high watermark, log end offset, ISR), also across restarts of Tidemark. The
    present leader's answer to OffsetForLeaderEpoch. Brokers that return no topic ids (before Kafka
    2.8) make the rule UNKNOWN.

    Where `__transaction_state` can be read: which transactions were recently committed on
    partitions at risk, and whether the new leader has anything of them (DescribeProducers and batch
    headers; READ on the topic). A transaction that is lost as a whole is then named, even if its
    producer has continued; a restart of Tidemark in between prevents that. Where brokers' logs are
    read: what the former leader logs when it returns.

Thresholds:
    None: one offset is enough. The counts are of offsets, including transaction markers and aborted
    records.

False positives:
    None known. A topic that was deleted and created again has another topic id, and compaction does
    not change the end of an epoch. If records beyond that end were deleted, or retention removed
    them, the leader answers with its log start offset: the loss is then understated or not
    detected. If the machine failed, and not only the broker, the former leader may have lost the
    end of its own log: `exact_to` is then too low.

Runbook:
    Follow `advice` first: the disk of the former leader holds the only copy, and that broker
    truncates it when it returns. Then check `groups_beyond`: these groups have read records that no
    longer exist, and may skip `may_skip_offsets` new records at the same offsets. Stop them, and
    reset to `epoch_end` those that are still beyond it (`tidemark loss check`): consumers that
    noticed the loss have gone back by themselves, and so have `groups_gone_on`. Have the producers
    write the lost records again. Set `unclean.leader.election.enable=false`.

    `certain_from` to `certain_to` is certainly lost; `visible_to_read_committed` of these offsets
    could have been read by read_committed consumers. `possible_to` is the end of what was observed
    and may have been committed. Records appended after `last_observation` are not known: the count
    is a lower bound. Each loss is a finding of its own, identified by the leader epoch with which
    it began; `incident` names what else was lost with the same broker.

    - `transaction_lost`: the transactions in `lost_transactions` were committed, and this partition
      has nothing of them. It is reported some rounds after the loss.
    - `former_leader_returned`: the former leader's log reached to `exact_to` and was truncated to
      `exact_from`. That is everything that is gone, and in general an upper bound of what was
      acknowledged; `proven_committed_offsets` of it were certainly committed.
    - `restored` (info): a replica that has the records leads again, and `restored_from` to
      `restored_to` can be read once more. Records written to the partition in between may be lost
      in turn, which is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rules.facts.column import Bools, marked
from rules.judgement import Case, Event, Judgement, PartitionSubjects, Reason, decide
from rules.loss.changes import Changes
from rules.loss.events import EventKey, events_of, first_reasons
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import loss_evidence
from rules.loss.proof import Proof, list_proofs
from rules.loss.restored import list_newly_restored, request_restored, restored_evidence
from rules.loss.returned import is_committed, list_newly_settled, return_evidence
from rules.loss.whole_transactions import (
    list_lost_transactions,
    lost_transaction_evidence,
    request_markers,
)
from rules.question import EpochEndQuestion, ProducersQuestion
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="committed_records_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    summary="Committed records are gone after a leader change.",
    is_critical=True,
    milder=(("restored", Severity.INFO),),
    sharpening=("transaction_lost", "former_leader_returned", "restored"),
    names_events=True,
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_SEEN_IS_MISSING = "nothing_seen_is_missing"
    FIRST_OBSERVATION = "first_observation"  # there is no earlier observation to compare with
    LOST = "lost"
    TRANSACTION_LOST = "transaction_lost"  # committed for its coordinator, missing in the log
    FORMER_LEADER_RETURNED = "former_leader_returned"  # its log lines give the exact range
    RESTORED = "restored"  # a replica that has the records leads again
    NOT_REPORTED = "not_reported"  # the new leader has not returned the end of the older epoch yet
    NO_TOPIC_ID = "no_topic_id"  # the broker is too old to distinguish a loss from another topic
    NOT_SEEN = "not_seen"  # the leader did not answer


def judge(view: View) -> Judgement:
    """Judge every partition; a loss is a finding of the round that proves it."""
    snapshot, changes = view.snapshot, Changes.of(view)
    rows = len(snapshot.partitions)
    proven = list_proofs(view)
    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(snapshot.partitions.are_without_id, Verdict.UNKNOWN, Why.NO_TOPIC_ID),
            Case(~snapshot.offsets.leader_epoch.valid, Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(np.full(rows, changes is None), Verdict.OK, Why.FIRST_OBSERVATION),
            Case(_is_waiting(rows, changes), Verdict.UNKNOWN, Why.NOT_REPORTED),
        ],
        (Verdict.OK, Why.NOTHING_SEEN_IS_MISSING),
        events=_events(view, proven),
        questions=(
            *_request_epoch_ends(view, changes),
            *_request_producers(view, proven),
            *request_markers(view),
            *request_restored(view),
        ),
    )


def _events(view: View, proven: Sequence[Proof]) -> list[Event]:
    """Return the losses that this round proves, and those of which it learned more."""
    lost = {proof.event: proof for proof in proven if proof.certain is not None}
    restored = list_newly_restored(view)
    # Restored records are not lost any more, whatever is learned of the loss later.
    gone, settled = (
        {key: loss for key, loss in losses.items() if loss.restored_epoch is None}
        for losses in (list_lost_transactions(view), list_newly_settled(view))
    )
    settled = {key: loss for key, loss in settled.items() if is_committed(loss)}

    def evidence(key: EventKey) -> LossEvidence:
        return {
            **(loss_evidence(view, lost[key]) if key in lost else {}),
            **(lost_transaction_evidence(gone[key]) if key in gone else {}),
            **(return_evidence(settled[key]) if key in settled else {}),
            **restored_evidence(None if key in lost else restored.get(key)),
        }

    reasons = first_reasons(
        (Why.FORMER_LEADER_RETURNED, settled),
        (Why.LOST, lost),
        (Why.TRANSACTION_LOST, gone),
        (Why.RESTORED, restored),
    )
    return events_of(view, reasons, evidence)


def _is_waiting(rows: int, changes: Changes | None) -> Bools:
    if changes is None:
        return np.zeros(rows, np.bool_)
    return marked(rows, changes.rows[changes.waiting].tolist())


def _request_producers(view: View, proven: Sequence[Proof]) -> tuple[ProducersQuestion, ...]:
    """Request every producer of the partitions that may have lost recently committed transactions."""
    committed = view.memory.transactions.committed
    rows = [proof.row for proof in proven if proof.is_open_ended and proof.name in committed]
    if not rows:
        return ()
    row_numbers = np.array(sorted(rows), np.int64)
    partitions = view.snapshot.partitions
    return (ProducersQuestion(partitions, row_numbers, is_urgent=True, wants_every=True),)


def _request_epoch_ends(view: View, changes: Changes | None) -> tuple[EpochEndQuestion, ...]:
    """Request where the older epochs ended, until the leaders have answered."""
    if changes is None or not changes.waiting.any():
        return ()
    waiting = changes.waiting
    return (
        EpochEndQuestion(
            view.snapshot.partitions, changes.rows[waiting], changes.old_epochs[waiting]
        ),
    )
