"""Finds the transactions in which batches of an episode were rejected, and how each of them ended.

Three sources show an end: the first marker of the producer in the partition's log from the rejected
offset on; `__transaction_state`; and the coordinator's present state. The latter two name no offset. A
transaction is therefore identified by its start, which its coordinator must have reported between two
answers of the leader that both show the same transaction open; or, where the leader was not queried,
after the line had been read and well before the rejection. What is not identified so is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rules.facts.batches import BatchesOf, MarkerSeen
from rules.facts.column import replace_fields
from rules.facts.episode_transactions import (
    OutcomeSource,
    RejectedTransaction,
    TransactionOutcome,
    UnknownOutcome,
)
from rules.facts.episodes import Episode
from rules.facts.last_observation import microseconds
from rules.facts.producers import OpenProducer
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import SequenceReason
from rules.facts.times import CLOCKS_AGREE_US, EPOCH, MICROSECOND
from rules.facts.transaction_log import Outcome
from rules.facts.transaction_unknown import lists
from rules.facts.transactions import TransactionState
from rules.sequence.classify import QUERIES_AT_ONCE
from rules.sequence.episode_context import EpisodeContext, EpisodeContexts
from rules.sequence.producer_transactions import (
    CUTS,
    ObservedProducer,
    ProducerTransactions,
    describe_producer,
    observe_producer,
)
from rules.sequence.transaction_outcome import NOTHING_SEEN, awaits_end
from rules.transactions.classes import TransactionClass, class_of

DECIDED: Final = {
    TransactionState.PREPARE_COMMIT: TransactionOutcome.COMMITTED,
    TransactionState.COMPLETE_COMMIT: TransactionOutcome.COMMITTED,
    TransactionState.PREPARE_ABORT: TransactionOutcome.ABORTED,
    TransactionState.PREPARE_EPOCH_FENCE: TransactionOutcome.ABORTED,
    TransactionState.COMPLETE_ABORT: TransactionOutcome.ABORTED,
}


def with_transactions(
    episode: Episode,
    facts: ProducerTransactions,
    contexts: EpisodeContexts,
    context: EpisodeContext,
) -> Episode:
    """Return an episode with what this round shows of its producer's transactions."""
    if episode.producer_id is None or context.error is SequenceReason.TOPIC_RECREATED:
        return episode
    seen = observe_producer(episode, facts, contexts, context)
    transaction = describe_producer(seen)
    rejections = episode.rejections
    if transaction.is_transactional:
        rejections = tuple(_with_transaction(rejection, seen) for rejection in rejections)
        reason = _unknown_reason(rejections, seen)
        transaction = replace(transaction, unknown_reason=reason)
    is_same = all(new is old for new, old in zip(rejections, episode.rejections, strict=True))
    if is_same and transaction == episode.transaction:
        return episode
    return replace_fields(episode, rejections=rejections, transaction=transaction)


def _with_transaction(rejection: Rejection, seen: ObservedProducer) -> Rejection:
    before = rejection.transaction or NOTHING_SEEN
    after = _advance(before, rejection, seen)
    if after == before:
        return rejection
    return replace_fields(rejection, transaction=after)


def _advance(
    before: RejectedTransaction, rejection: Rejection, seen: ObservedProducer
) -> RejectedTransaction:
    if before.outcome is TransactionOutcome.COMMITTED:
        return before
    marker = _marker_of(rejection, seen.scanned)
    if marker is not None and marker.is_commit is not None:
        return _with_marker(before, marker, seen)
    if before.has_ended:
        return _by_log(before, seen) or replace(before, outcome=_by_whom(before, seen))
    bound = _identify(before, rejection, seen)
    return _by_log(bound, seen) or _by_coordinator(bound, seen) or _by_leader(bound, seen)


def _marker_of(rejection: Rejection, scanned: BatchesOf | None) -> MarkerSeen | None:
    """Return the first marker from the rejected offset on, where the log was scanned from there on."""
    offset = rejection.offset
    if scanned is None or offset is None:
        return None
    if not 0 <= scanned.scanned_from <= offset <= scanned.scanned_to:
        return None
    return next((marker for marker in scanned.markers if marker.offset >= offset), None)


def _with_marker(
    before: RejectedTransaction, marker: MarkerSeen, seen: ObservedProducer
) -> RejectedTransaction:
    ended = replace(
        before,
        outcome=TransactionOutcome.COMMITTED if marker.is_commit else TransactionOutcome.ABORTED,
        source=OutcomeSource.MARKER,
        marker_offset=marker.offset,
        marker_epoch=marker.producer_epoch,
    )
    if marker.is_commit:
        return ended
    if before.outcome in CUTS.values():
        return replace(ended, outcome=before.outcome)
    return replace(ended, outcome=_by_whom(ended, seen))


def _by_whom(ended: RejectedTransaction, seen: ObservedProducer) -> TransactionOutcome:
    """Return who aborted a transaction; an owner that is not known to have been cut did it itself."""
    is_owner = ended.outcome is TransactionOutcome.ABORTED
    return seen.cut_of(ended.marker_epoch) if is_owner else ended.outcome


def _identify(
    before: RejectedTransaction, rejection: Rejection, seen: ObservedProducer
) -> RejectedTransaction:
    """Return the transaction with its first offset and its start, as far as this round shows them."""
    producer = seen.open
    if producer is not None and _is_its(producer, rejection, seen):
        is_still = before.start_offset == producer.start_offset
        return replace(
            before,
            start_offset=producer.start_offset,
            producer_epoch=producer.producer_epoch,
            started_us=_start_between(before, producer, seen) if is_still else None,
        )
    if before.started_us is None and before.start_offset is None and _is_by_time(rejection, seen):
        epoch = None if seen.entry is None else seen.entry.producer_epoch
        return replace(before, started_us=seen.started_us, producer_epoch=epoch)
    return before


def _is_its(producer: OpenProducer, rejection: Rejection, seen: ObservedProducer) -> bool:
    """Whether the transaction that the leader has open is that of the rejected batch.

    No marker lies between the two: the transaction began before the rejected offset, or the log was
    scanned from there to its beginning.
    """
    offset, scanned = rejection.offset, seen.scanned
    if offset is None or not seen.context.is_after(rejection):
        return False
    known = None if rejection.transaction is None else rejection.transaction.start_offset
    if producer.start_offset <= offset or producer.start_offset == known:
        return True
    if scanned is None or not 0 <= scanned.scanned_from <= offset:
        return False
    is_covered = producer.start_offset <= scanned.scanned_to
    return is_covered and _marker_of(rejection, scanned) is None


def _start_between(
    before: RejectedTransaction, producer: OpenProducer, seen: ObservedProducer
) -> int | None:
    """Return the start of a transaction that the leader had open before and after its coordinator's answer."""
    if before.started_us is not None:
        return before.started_us
    entry = seen.entry
    if entry is None or not entry.is_open:
        return None
    is_same_epoch = entry.producer_epoch in (None, producer.producer_epoch)
    return seen.started_us if is_same_epoch else None


def _is_by_time(rejection: Rejection, seen: ObservedProducer) -> bool:
    """Whether the coordinator's open transaction began before the rejection, and lasted until after it."""
    name, started, first = seen.episode.name, seen.started_us, rejection.first_us
    if name is None or started is None or first is None or not lists(seen.entry, name):
        return False
    return rejection.seen_us < seen.context.now_us and started + CLOCKS_AGREE_US <= first


def _by_log(bound: RejectedTransaction, seen: ObservedProducer) -> RejectedTransaction | None:
    """Return the end of a transaction by `__transaction_state`."""
    if bound.started_us is None:
        return None
    for entry in seen.ended:
        if microseconds(entry.started_at) == bound.started_us:
            is_commit = entry.outcome is Outcome.COMMITTED
            cut = TransactionOutcome.ABORTED if entry.cut is None else CUTS[entry.cut]
            return replace(
                bound,
                outcome=TransactionOutcome.COMMITTED if is_commit else cut,
                source=OutcomeSource.TRANSACTION_LOG,
                marker_epoch=entry.marker_epoch,
            )
    return None


def _by_coordinator(
    bound: RejectedTransaction, seen: ObservedProducer
) -> RejectedTransaction | None:
    """Return the state of a transaction by its coordinator; None if that describes another one."""
    entry = seen.entry
    if entry is None or bound.started_us is None or bound.started_us != seen.started_us:
        return None
    outcome = DECIDED.get(entry.state)
    if outcome is None and entry.state is TransactionState.ONGOING:
        class_ = class_of(entry, EPOCH + seen.context.now_us * MICROSECOND)
        is_overdue = class_ is TransactionClass.OVERDUE
        outcome = TransactionOutcome.OVERDUE if is_overdue else TransactionOutcome.OPEN
    if outcome is None:
        return None
    return replace(bound, outcome=outcome, source=OutcomeSource.COORDINATOR)


def _by_leader(bound: RejectedTransaction, seen: ObservedProducer) -> RejectedTransaction:
    """Return a transaction as open if its leader has it open, as ended otherwise: it is not known how."""
    is_bound = bound.start_offset is not None
    if seen.is_described and is_bound:
        is_open = seen.open is not None and seen.open.start_offset == bound.start_offset
        if is_open:
            return replace(bound, outcome=TransactionOutcome.OPEN, source=OutcomeSource.PARTITION)
        return _end_unseen(bound)
    if bound.started_us is None:
        return bound
    is_over = seen.is_unlisted or seen.started_us not in (None, bound.started_us)
    return _end_unseen(bound) if is_over else bound


def _end_unseen(bound: RejectedTransaction) -> RejectedTransaction:
    return replace(bound, outcome=TransactionOutcome.UNKNOWN, source=None)


def _unknown_reason(
    rejections: Iterable[Rejection], seen: ObservedProducer
) -> UnknownOutcome | None:
    """Return why the outcome of a rejection's transaction is not known; None if all are, or are open."""
    unknown = [
        rejection
        for rejection in rejections
        if awaits_end(rejection)
        and (rejection.transaction or NOTHING_SEEN).outcome is TransactionOutcome.UNKNOWN
    ]
    if not unknown:
        return None
    if seen.context.error is not None:
        return UnknownOutcome.NOT_OBSERVED
    if seen.context.scan_error is SequenceReason.NOT_READABLE:
        return UnknownOutcome.NOT_READABLE
    is_awaited = seen.episode.queries < QUERIES_AT_ONCE
    return UnknownOutcome.AWAITED if is_awaited else UnknownOutcome.END_NOT_SEEN
