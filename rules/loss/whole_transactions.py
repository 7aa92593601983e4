"""Committed transactions of which nothing is left on a partition.

After an unclean election a whole transaction may be gone: data, marker and producer state. The next
one goes on as if nothing had been, so that no client, log line or metric tells. Three things do: the
coordinators' log, which calls it committed; the producers that the new leader remembers, because a
partition with the marker has the marker's epoch for its producer, or a later one; and, where the
producer has gone on meanwhile, the log itself: with transactions v2 each marker has an epoch of its
own (KIP-890), and the lost one is not there. Before transactions v2 an epoch lasts for many
transactions, and only a producer that the leader does not know at all tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.evidence import EvidenceValue, Scalar
from rules.facts.batches import BatchesOf, MarkerSeen
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import ReportedLoss
from rules.facts.times import EPOCH
from rules.facts.transaction_memory import CommittedTransaction
from rules.loss.loss_evidence import SHOWN, timestamp
from rules.loss.returned import row_of
from rules.question import BatchesQuestion, BatchRequest
from rules.view import View

DOUBTED_US: Final = 2 * 60 * 1_000_000  # microseconds; then it is told what is known
CLOCKS: Final = 10_000_000  # microseconds by which the clocks of two brokers may differ


def lost_transactions(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return the losses of which this round knows which transactions are missing, by row and epoch."""
    before = {} if view.before is None else {one.key: one for one in view.before.losses.reported}
    losses: dict[tuple[int, int], ReportedLoss] = {}
    for loss in view.memory.losses.reported:
        old, row = before.get(loss.key), row_of(view, loss)
        was_told = old is not None and old.missing and not old.doubtful
        if row is not None and loss.missing and not loss.doubtful and not was_told:
            losses[row, loss.leader_epoch] = loss
    return losses


def about_markers(view: View) -> tuple[BatchesQuestion, ...]:
    """Ask for what the producers of doubtful transactions wrote since, and for their markers."""
    wanted = [
        BatchRequest(
            name=loss.name,
            producer_id=producer_id,
            offset=None,
            sequence=None,
            last_record_at=EPOCH + timedelta(microseconds=loss.doubtful_since_us),
        )
        for loss in view.memory.losses.reported
        if row_of(view, loss) is not None
        for producer_id in sorted({one.producer_id for one in loss.doubtful})
    ]
    return (BatchesQuestion(tuple(wanted)),) if wanted else ()


def with_transactions(view: View, loss: ReportedLoss) -> ReportedLoss:
    """Return the loss with what this round told of the transactions that it may have taken.

    A topic may be missing from one answer of a broker: what is known of it waits, and its time too.
    """
    row, is_late = row_of(view, loss), microseconds(view.now) - loss.reported_us > DOUBTED_US
    if row is None:
        return replace(loss, missing=(), doubtful=()) if _is_recreated(view, loss) else loss
    if loss.doubtful:
        loss = _was_scanned(view, row, loss)
    elif not loss.missing and row in view.snapshot.producers.epochs:
        loss = _first_answer(view, loss, view.snapshot.producers.epochs[row])
    return replace(loss, doubtful=()) if is_late else loss


def lost_transaction_evidence(loss: ReportedLoss) -> dict[str, EvidenceValue]:
    """Return the transactions as evidence, the latest first; the epochs tie it to what was told."""
    gone = sorted(loss.missing, key=lambda one: one.ended_us, reverse=True)
    rows: list[dict[str, Scalar]] = [
        {
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "committed_at": timestamp(one.ended_us),
        }
        for one in gone
    ]
    return {
        "topic_id": loss.topic_id,
        "leader_epoch_before": loss.leader_epoch_before,
        "leader_epoch": loss.leader_epoch,
        "lost_transactions": rows[:SHOWN],
        "lost_transaction_count": len(gone),
    }


def _is_recreated(view: View, loss: ReportedLoss) -> bool:
    """Whether the topic of that name is another one by now."""
    partitions = view.snapshot.partitions
    row = partitions.index.row(loss.name.topic, loss.name.partition)
    present = None if row is None else partitions.topic_id(row)
    return None not in (present, loss.topic_id) and present != loss.topic_id


def _first_answer(view: View, loss: ReportedLoss, epochs: Mapping[int, int]) -> ReportedLoss:
    """Sort what was committed by what the new leader remembers of its producers.

    Only what had ended before this round: what ended in it may have ended after the leader's answer.
    """
    if view.before is None:
        return loss
    committed = view.before.transactions.committed.get(loss.name, ())
    missing = tuple(one for one in committed if epochs.get(one.producer_id, -1) < one.marker_epoch)
    rest = [one for one in committed if one not in missing]
    doubtful = tuple(one for one in rest if one.marker_epoch != one.producer_epoch)
    latest = {one.producer_id: one for one in sorted(doubtful, key=lambda one: one.ended_us)}
    return replace(
        loss, missing=missing, doubtful=doubtful, doubtful_since_us=_since(latest.values())
    )


def _was_scanned(view: View, row: int, loss: ReportedLoss) -> ReportedLoss:
    """Sort the doubtful ones by the markers that the log shows, and search further back for the rest."""
    found = {batch.producer_id: batch for batch in view.snapshot.batches if batch.name == loss.name}
    missing, rest = list(loss.missing), []
    for one in loss.doubtful:
        answer = found.get(one.producer_id)
        if answer is None or not _is_whole(view, row, loss, answer):
            rest.append(one)
        elif not _is_there(one, answer.markers, loss.leader_epoch_before):
            is_seen = one.started_us - CLOCKS >= loss.doubtful_since_us
            (missing if is_seen else rest).append(one)
    is_answered = len(rest) < len(loss.doubtful)
    return replace(
        loss,
        missing=tuple(missing),
        doubtful=tuple(rest),
        doubtful_since_us=_since(rest) if is_answered else loss.doubtful_since_us,
    )


def _is_whole(view: View, row: int, loss: ReportedLoss, answer: BatchesOf) -> bool:
    """Whether the log was scanned from the wanted time on, to its end.

    Where it begins at the log start, markers may have been deleted with what lay before.
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


def _is_there(one: CommittedTransaction, markers: Sequence[MarkerSeen], epoch_before: int) -> bool:
    """Whether a transaction's marker is in the log, or a later one that the old leader wrote."""
    of_old = [marker.producer_epoch for marker in markers if marker.leader_epoch <= epoch_before]
    if one.marker_epoch <= max(of_old, default=-1):
        return True
    return any(marker.producer_epoch == one.marker_epoch for marker in markers)


def _since(transactions: Iterable[CommittedTransaction]) -> int:
    return min((transaction.started_us for transaction in transactions), default=CLOCKS) - CLOCKS
