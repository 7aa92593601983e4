"""What blocks each last stable offset: the classifier.

A transaction hangs when a partition has it open and no coordinator will ever write its marker. On Kafka 4
its producer is usually listed, as Empty: what decides is that the coordinator does not list the partition
(`kafka-transactions.sh find-hanging` checks the same, KIP-664). Requests are not atomic, so that this
counts only when two rounds have observed the same open transaction so, each time from the leader after
the coordinators had answered.

ListTransactions omits what Tidemark may not see. A producer that no coordinator lists hangs only if every
coordinator answered and every transactional id is proven to be visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.marker_waits import rows_held_by_nobody
from rules.facts.producers import OpenProducer
from rules.facts.times import MICROSECOND
from rules.facts.transaction_memory import ObservedTransaction, transaction_key
from rules.facts.transaction_unknown import UnknownReason, lists, unknown_reason_of
from rules.facts.transactions import Transaction
from rules.transactions.classes import TransactionClass, class_of
from rules.view import View

CONFIRMED_AFTER: Final = timedelta(milliseconds=900)  # rounds that are early come a second later


@dataclass(frozen=True, slots=True, kw_only=True)
class LsoBlocker:
    """One transaction that a partition has open, or the marker for which its LSO waits."""

    row: int  # of the snapshot's partitions
    name: TopicPartition
    class_: TransactionClass
    unknown_reason: UnknownReason | None = None  # set where the class is unknown
    producer: OpenProducer | None = None  # None: nobody has a transaction open any more
    transaction: Transaction | None = None  # None: no coordinator lists its producer
    first_seen_us: int | None = None

    @property
    def start_offset(self) -> int | None:
        """Return the first offset of the transaction, None for a marker."""
        return None if self.producer is None else self.producer.start_offset


def lso_blockers(view: View) -> tuple[LsoBlocker, ...]:
    """Return the LSO blockers that the leaders reported, ordered by row and start offset.

    Rows that were not observed have none: see `Producers.observed`.
    """
    return tuple(_of_producers(view)) + tuple(_of_markers(view))


def _of_producers(view: View) -> Iterator[LsoBlocker]:
    snapshot = view.snapshot
    by_producer = snapshot.transactions.by_producer()
    for producer in snapshot.producers.open:
        name = snapshot.partitions.index.topic_partition(producer.row)
        entry = by_producer.get(producer.producer_id)
        seen = view.memory.transactions.sightings[transaction_key(snapshot, producer)]
        class_, unknown_reason = _classify(view, entry, name, producer, seen)
        yield LsoBlocker(
            row=producer.row,
            name=name,
            class_=class_,
            unknown_reason=unknown_reason,
            producer=producer,
            transaction=entry,
            first_seen_us=seen.first_seen_us,
        )


def _classify(
    view: View,
    entry: Transaction | None,
    name: TopicPartition,
    producer: OpenProducer,
    seen: ObservedTransaction,
) -> tuple[TransactionClass, UnknownReason | None]:
    if entry is not None and lists(entry, name):
        class_ = class_of(entry, view.now)
        return class_, UnknownReason.NOT_DESCRIBED if class_ is TransactionClass.UNKNOWN else None
    unknown_reason = unknown_reason_of(view.snapshot.transactions, entry, name)
    if unknown_reason is not None:
        return TransactionClass.UNKNOWN, unknown_reason
    if seen.unlisted_since_us is None or not _was_unlisted_before(view, producer):
        return TransactionClass.UNKNOWN, UnknownReason.CONFIRMING
    return TransactionClass.HANGING, None


def _was_unlisted_before(view: View, producer: OpenProducer) -> bool:
    """Whether a round at least 0.9 s earlier observed the same transaction, listed by no coordinator.

    Two observations within milliseconds could both fall into one failover of a coordinator.
    """
    if view.before is None:
        return False
    earlier = view.before.transactions.sightings.get(transaction_key(view.snapshot, producer))
    if earlier is None or earlier.unlisted_since_us is None:
        return False
    age_us = microseconds(view.now) - earlier.unlisted_since_us
    return age_us >= CONFIRMED_AFTER // MICROSECOND


def _of_markers(view: View) -> Iterator[LsoBlocker]:
    """Yield the partitions that are blocked although no producer has a transaction open from there on.

    The last stable offset waits for an end marker until the marker is replicated. What only this round
    shows may have ended between its requests: offsets are read before producers.
    """
    snapshot = view.snapshot
    for row, _ in rows_held_by_nobody(snapshot):
        name = snapshot.partitions.index.topic_partition(row)
        since_us = view.memory.transactions.markers[name].since_us
        is_confirmed = since_us < microseconds(view.now)
        waits = is_confirmed and bool(snapshot.offsets.unreplicated_span[row])
        yield LsoBlocker(
            row=row,
            name=name,
            class_=TransactionClass.MARKER_NOT_REPLICATED if waits else TransactionClass.UNKNOWN,
            unknown_reason=None if waits else UnknownReason.NOBODY_FOUND,
            first_seen_us=since_us,
        )
