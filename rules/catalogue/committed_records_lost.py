"""Committed records are gone after a leader change: proven.

Detects:
    Partitions whose present leader's log ends, for the leader epoch that was last seen, below the
    high watermark that was last seen in it.

Why it matters:
    Producers were told that these records are safe, and consumers may have read them. Nothing else
    tells: the log grows on, a Java producer sees no error, and consumers go on where they were.

Inputs:
    The last observation of each partition before its leader epoch changed, also over restarts of Tidemark:
    topic id, epoch, last stable offset, high watermark, log end, ISR. The present leader's answer
    to OffsetForLeaderEpoch. Where `__transaction_state` may be read: which transactions were committed
    lately on partitions at risk, and whether the new leader has anything of them (DescribeProducers and
    batch headers, READ on the topic), so that a transaction that is lost whole is named, also if its
    producer has gone on; a restart of Tidemark then loses it. Where brokers' logs are read:
    what the old leader writes when it comes back. Brokers that tell no topic ids (before Kafka 2.8):
    UNKNOWN.

Thresholds:
    None: one offset is enough. Offsets are counted, with markers and aborted records.

False positives:
    None are known. A topic that was created again has another id, and compaction does not change
    where an epoch ended. Records that were deleted, or that retention took, beyond that end make
    the leader answer with its log start: a loss is understated then, or not seen. A machine that died,
    and not only its broker, may have lost the end of its own log: `exact_to` is too low then.

Runbook:
    `certain_from` to `certain_to` is gone for certain, of it `visible_to_read_committed` offsets
    could have been read. `possible_to` is how far what may have been committed was seen; what was
    appended after `last_observation` is not known, and the count is a lower bound. Reason `transaction_lost`:
    the transactions in `lost_transactions` were committed, and this partition has nothing of them;
    it comes some rounds later than the rest. Reason `former_leader_returned`: the old leader's log had
    reached `exact_to`, and it was cut at `exact_from`; that is all that is gone, and in general an upper
    bound of what was acknowledged, of which `proven_committed_offsets` are certain. Reason `restored`
    (info): a replica that has them leads again, and `restored_from` to `restored_to` can be read once
    more; what was written to the partition meanwhile may be gone in turn, which is told by itself.
    Each loss is a finding of its own, by the leader epoch with which it began; `incident` names what else
    the same broker left behind. Follow `advice` first: the old leader's disk holds the only copy, and it truncates when it comes back. Then observe
    `groups_beyond`: they have read what is not there any more, and may skip `may_skip_offsets` new records
    at the same offsets; stop them, reset them to `epoch_end`. Have the producers write the lost
    records again. Turn off `unclean.leader.election.enable`, and set `min.insync.replicas` to 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Bools, marked
from rules.judgement import Case, Event, Judgement, PartitionSubjects, Reason, decide
from rules.loss.changes import Changes
from rules.loss.events import EventKey, events_of, first_reasons
from rules.loss.loss_evidence import told
from rules.loss.proof import Proof, proofs
from rules.loss.restored import about_restored, newly_restored, restored_evidence
from rules.loss.returned import is_committed, newly_settled, return_evidence
from rules.loss.whole_transactions import (
    about_markers,
    lost_transaction_evidence,
    lost_transactions,
)
from rules.question import EpochEndQuestion, ProducersQuestion
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="committed_records_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
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
    FIRST_OBSERVATION = "first_observation"  # nothing is remembered to compare with
    LOST = "lost"
    TRANSACTION_LOST = (
        "transaction_lost"  # its coordinator calls it committed, and nothing is there
    )
    FORMER_LEADER_RETURNED = "former_leader_returned"  # its own log lines tell exactly what is gone
    RESTORED = "restored"  # a replica that has them leads again
    NOT_REPORTED = "not_reported"  # the new leader has not said yet where the older epoch ended
    NO_TOPIC_ID = "no_topic_id"  # the broker is too old to tell a loss from another topic
    NOT_SEEN = "not_seen"  # the leader gave no answer


def judge(view: View) -> Judgement:
    """Judge every partition; a loss is said in the round that proves it."""
    snapshot, changes = view.snapshot, Changes.of(view)
    rows = len(snapshot.partitions)
    proven = proofs(view)
    return decide(
        RULE,
        PartitionSubjects(snapshot),
        [
            Case(_unnamed(view), Verdict.UNKNOWN, Why.NO_TOPIC_ID),
            Case(~snapshot.offsets.leader_epoch.valid, Verdict.UNKNOWN, Why.NOT_SEEN),
            Case(np.full(rows, changes is None), Verdict.OK, Why.FIRST_OBSERVATION),
            Case(_waiting(rows, changes), Verdict.UNKNOWN, Why.NOT_REPORTED),
        ],
        (Verdict.OK, Why.NOTHING_SEEN_IS_MISSING),
        events=_events(view, proven),
        questions=(
            *_questions(view, changes),
            *_about_transactions(view, proven),
            *about_markers(view),
            *about_restored(view),
        ),
    )


def _events(view: View, proven: Sequence[Proof]) -> list[Event]:
    """Return what this round proves, and what it learned of losses that were proven before."""
    lost = {(proof.row, proof.leader_epoch): proof for proof in proven if proof.certain is not None}
    restored = newly_restored(view)
    # What is there again is lost no more, whatever is found out of it later.
    gone, settled = (
        {key: loss for key, loss in found.items() if loss.restored_epoch is None}
        for found in (lost_transactions(view), newly_settled(view))
    )
    settled = {key: loss for key, loss in settled.items() if is_committed(loss)}

    def evidence(key: EventKey) -> dict[str, EvidenceValue]:
        return {
            **(told(view, lost[key]) if key in lost else {}),
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


def _unnamed(view: View) -> Bools:
    partitions = view.snapshot.partitions
    unnamed = np.array([topic_id is None for topic_id in partitions.topic_ids], np.bool_)
    return unnamed[partitions.index.topic_of_row]


def _waiting(rows: int, changes: Changes | None) -> Bools:
    if changes is None:
        return np.zeros(rows, np.bool_)
    return marked(rows, changes.rows[changes.waiting].tolist())


def _about_transactions(view: View, proven: Sequence[Proof]) -> tuple[ProducersQuestion, ...]:
    """Ask for every producer of partitions that may have lost what was committed lately."""
    committed = view.memory.transactions.committed
    rows = [proof.row for proof in proven if proof.is_open_ended and proof.name in committed]
    if not rows:
        return ()
    wanted = np.array(sorted(rows), np.int64)
    partitions = view.snapshot.partitions
    return (ProducersQuestion(partitions, wanted, is_urgent=True, wants_every=True),)


def _questions(view: View, changes: Changes | None) -> tuple[EpochEndQuestion, ...]:
    """Ask where the older epochs ended, for as long as nobody has told."""
    if changes is None or not changes.waiting.any():
        return ()
    waiting = changes.waiting
    return (
        EpochEndQuestion(
            view.snapshot.partitions, changes.rows[waiting], changes.old_epochs[waiting]
        ),
    )
