"""Committed transactions of which nothing is left on a partition.

After an unclean election a whole transaction may be lost: data, marker and producer state. The producer's
next transaction succeeds, so that no client, log line or metric shows the loss. Three sources do: the
coordinators' log, which has it as committed; the producer state of the new leader, because a partition
with the marker has the marker's epoch for its producer, or a later one; and, where the producer has
continued, the partition's log: with transactions v2 each marker has an epoch of its own (KIP-890), and
the lost one is missing. Before transactions v2 an epoch lasts for many transactions, and only a producer
that the leader does not know at all is evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.batches import BatchesOf, MarkerSeen
from rules.facts.identity import are_different
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import ReportedLoss
from rules.facts.times import EPOCH, iso_time
from rules.facts.transaction_memory import CommittedTransaction
from rules.loss.evidence_fields import LossEvidence, LossTransaction
from rules.loss.loss_evidence import SHOWN
from rules.loss.returned import list_losses, row_of
from rules.question import BatchesQuestion, BatchRequest
from rules.view import View

DOUBTED_US: Final = 2 * 60 * 1_000_000  # microseconds; then what is known is reported
CLOCKS: Final = 10_000_000  # microseconds by which the clocks of two brokers may differ


def list_lost_transactions(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and epoch the losses whose missing transactions this round determined."""

    def is_determined(loss: ReportedLoss) -> bool:
        return bool(loss.missing) and not loss.doubtful

    return list_losses(
        view,
        lambda old, loss: is_determined(loss) and (old is None or not is_determined(old)),
    )


def request_markers(view: View) -> tuple[BatchesQuestion, ...]:
    """Request the later batches and markers of the producers of doubtful transactions."""
    requests = [
        BatchRequest(
            name=loss.name,
            producer_id=producer_id,
            offset=None,
            sequence=None,
            last_record_at=EPOCH + timedelta(microseconds=loss.doubtful_since_us),
        )
        for loss in view.memory.losses.reported
        if row_of(view, loss) is not None
        for producer_id in sorted({transaction.producer_id for transaction in loss.doubtful})
    ]
    return (BatchesQuestion(tuple(requests)),) if requests else ()


def update_transactions(view: View, loss: ReportedLoss) -> ReportedLoss:
    """Return the loss with what this round learned of the transactions that it may include.

    A topic may be missing from one response of a broker: its state is then kept, with its deadline.
    """
    row, is_late = row_of(view, loss), microseconds(view.now) - loss.reported_us > DOUBTED_US
    if row is None:
        return replace(loss, missing=(), doubtful=()) if _is_recreated(view, loss) else loss
    if loss.doubtful:
        loss = _apply_scan(view, row, loss)
    elif not loss.missing and row in view.snapshot.producers.epochs:
        loss = _apply_producers(view, loss, view.snapshot.producers.epochs[row])
    return replace(loss, doubtful=()) if is_late else loss


def lost_transaction_evidence(loss: ReportedLoss) -> LossEvidence:
    """Return the transactions as evidence, the latest first; the epochs identify the reported loss."""
    gone = sorted(loss.missing, key=lambda transaction: transaction.ended_us, reverse=True)
    rows: list[LossTransaction] = [
        {
            "transactional_id": transaction.transactional_id,
            "producer_id": transaction.producer_id,
            "committed_at": iso_time(transaction.ended_us),
        }
        for transaction in gone
    ]
    return {
        "topic_id": loss.topic_id,
        "leader_epoch_before": loss.leader_epoch_before,
        "leader_epoch": loss.leader_epoch,
        "lost_transactions": rows[:SHOWN],
        "lost_transaction_count": len(gone),
    }


def _is_recreated(view: View, loss: ReportedLoss) -> bool:
    """Whether the topic was deleted and created again."""
    partitions = view.snapshot.partitions
    row = partitions.index.row(loss.name.topic, loss.name.partition)
    return row is not None and are_different(partitions.topic_id(row), loss.topic_id)


def _apply_producers(view: View, loss: ReportedLoss, epochs: Mapping[int, int]) -> ReportedLoss:
    """Classify the committed transactions by the new leader's state of their producers.

    Only transactions that had ended before this round: later ones may have ended after the leader's answer.
    """
    if view.before is None:
        return loss
    elsewhere = _named_elsewhere(view, loss)
    committed = [
        transaction
        for transaction in view.before.transactions.committed.get(loss.name, ())
        if transaction not in elsewhere and _may_be_lost_by(loss, transaction)
    ]
    missing = tuple(
        transaction
        for transaction in committed
        if (epoch := epochs.get(transaction.producer_id)) is None
        or epoch < transaction.marker_epoch
    )
    rest = [transaction for transaction in committed if transaction not in missing]
    doubtful = tuple(
        transaction
        for transaction in rest
        if transaction.marker_epoch != transaction.producer_epoch
    )
    latest = {
        transaction.producer_id: transaction
        for transaction in sorted(doubtful, key=lambda transaction: transaction.ended_us)
    }
    return replace(
        loss, missing=missing, doubtful=doubtful, doubtful_since_us=_since(latest.values())
    )


def _named_elsewhere(view: View, loss: ReportedLoss) -> set[CommittedTransaction]:
    """Return what other leader changes of the partition have lost; what came back may be lost again."""
    return {
        transaction
        for other in view.losses_before.reported
        if other.missing and other.restored_epoch is None and other.key != loss.key
        if (other.name, other.topic_id) == (loss.name, loss.topic_id)
        for transaction in other.missing
    }


def _may_be_lost_by(loss: ReportedLoss, transaction: CommittedTransaction) -> bool:
    """Whether this leader change may have lost a transaction, or only an earlier one.

    When a transaction has ended its markers are below the high watermark. If all below the high watermark that
    was observed later is still there, the change has not lost it.
    """
    observed_us = loss.last_observation_us
    ended_before = observed_us is not None and transaction.ended_us + CLOCKS < observed_us
    return loss.certain_to is not None or not ended_before


def _apply_scan(view: View, row: int, loss: ReportedLoss) -> ReportedLoss:
    """Classify the doubtful transactions by the markers in the log, and search further back for the rest."""
    batches = {
        batch.producer_id: batch for batch in view.snapshot.batches if batch.name == loss.name
    }
    missing, rest = list(loss.missing), []
    for transaction in loss.doubtful:
        answer = batches.get(transaction.producer_id)
        if answer is None or not _is_whole(view, row, loss, answer):
            rest.append(transaction)
        elif not _is_there(transaction, answer.markers, loss.leader_epoch_before):
            is_seen = transaction.started_us - CLOCKS >= loss.doubtful_since_us
            (missing if is_seen else rest).append(transaction)
    is_answered = len(rest) < len(loss.doubtful)
    return replace(
        loss,
        missing=tuple(missing),
        doubtful=tuple(rest),
        doubtful_since_us=_since(rest) if is_answered else loss.doubtful_since_us,
    )


def _is_whole(view: View, row: int, loss: ReportedLoss, answer: BatchesOf) -> bool:
    """Whether the log was scanned from the requested time on, to its end.

    If the scan begins at the log start, markers may have been deleted with earlier records.
    """
    end, start = (
        column[row]
        for column in (
            view.snapshot.offsets.high_watermark,
            view.snapshot.offsets.log_start_offset,
        )
    )
    if end is None or answer.since is None or answer.scanned_to < end:
        return False
    is_cut = start is None or 0 < start >= answer.scanned_from
    return microseconds(answer.since) <= loss.doubtful_since_us and not is_cut


def _is_there(
    transaction: CommittedTransaction, markers: Sequence[MarkerSeen], epoch_before: int
) -> bool:
    """Whether a transaction's marker is in the log, or a later one that the old leader wrote."""
    return any(
        marker.producer_epoch == transaction.marker_epoch
        or (
            marker.producer_epoch > transaction.marker_epoch and marker.leader_epoch <= epoch_before
        )
        for marker in markers
    )


def _since(transactions: Iterable[CommittedTransaction]) -> int:
    return min((transaction.started_us for transaction in transactions), default=CLOCKS) - CLOCKS
