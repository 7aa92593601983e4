"""What a round observed of the transactions of an episode's producer, and whether it has any.

Transactional are producers with a transactional id, as batch headers, markers, some log lines and the
coordinators show. A producer whose batches say that they are not, or whom no coordinator knows although
every id is visible, is not. Otherwise it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rules.facts.batches import BatchesOf
from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import EpisodeTransaction, TransactionOutcome
from rules.facts.episodes import Episode
from rules.facts.last_observation import microseconds
from rules.facts.producers import OpenProducer
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Cut, EndedTransaction
from rules.facts.transactions import IdVisibility, Transaction, Transactions, TransactionState
from rules.sequence.episode_context import EpisodeContext, EpisodeContexts

CUTS: Final = {
    Cut.SECOND_INSTANCE: TransactionOutcome.FENCED,
    Cut.TIMEOUT: TransactionOutcome.TIMED_OUT,
}
# Lines that brokers write only of transactional producers.
IN_TRANSACTIONS: Final = (SequenceForm.EXPECTED_ZERO, SequenceForm.EARLIEST_SEEN)


@dataclass(frozen=True, slots=True, eq=False)
class ProducerTransactions:
    """What a round observed of the transactions of some producers, by producer id."""

    transactions: Transactions
    entries: Mapping[int, Transaction]
    open: Mapping[tuple[int, int], OpenProducer]  # by row and producer id
    ended: Mapping[int, tuple[EndedTransaction, ...]]

    @classmethod
    def of(cls, snapshot: Snapshot, episodes: Iterable[Episode]) -> ProducerTransactions:
        """Select what is about the producers of episodes."""
        ids = frozenset(episode.producer_id for episode in episodes)
        ended: dict[int, tuple[EndedTransaction, ...]] = {}
        for entry in snapshot.transaction_log.ended:
            if entry.producer_id in ids:
                ended[entry.producer_id] = (*ended.get(entry.producer_id, ()), entry)
        known = snapshot.transactions.known.values()
        return cls(
            transactions=snapshot.transactions,
            entries={entry.producer_id: entry for entry in known if entry.producer_id in ids},
            open={
                (producer.row, producer.producer_id): producer
                for producer in snapshot.producers.open
                if producer.producer_id in ids
            },
            ended=ended,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedProducer:
    """What a round observed of the producer of one episode."""

    episode: Episode
    context: EpisodeContext
    scanned: BatchesOf | None
    is_described: bool  # by the partition's leader
    open: OpenProducer | None  # its transaction on the partition, if it is described
    entry: Transaction | None  # at its coordinator
    ended: tuple[EndedTransaction, ...]
    transactions: Transactions
    cut: TransactionOutcome | None
    cut_epoch: int | None

    @property
    def started_us(self) -> int | None:
        """Return the start of the transaction that the coordinator describes."""
        started = None if self.entry is None else self.entry.started_at
        return None if started is None else microseconds(started)

    @property
    def is_unlisted(self) -> bool:
        """Whether no coordinator has a transaction of this producer open."""
        if self.entry is not None:
            return not self.entry.is_open and self.entry.state is not TransactionState.UNKNOWN
        is_visible = self.transactions.visibility is not IdVisibility.UNPROVEN
        return self.transactions.is_complete and is_visible

    def cut_of(self, marker_epoch: int | None) -> TransactionOutcome:
        """Return who aborted the transaction whose marker has this epoch, as far as is known."""
        is_cut = marker_epoch is not None and marker_epoch == self.cut_epoch
        return self.cut if is_cut and self.cut is not None else TransactionOutcome.ABORTED


def observe_producer(
    episode: Episode,
    facts: ProducerTransactions,
    contexts: EpisodeContexts,
    context: EpisodeContext,
) -> ObservedProducer:
    """Select what is about the producer of one episode."""
    row, producer_id = context.row, episode.producer_id or 0
    is_described = row is not None and bool(contexts.snapshot.producers.observed[row])
    ended = facts.ended.get(producer_id, ())
    cut, epoch = episode.transaction.cut, episode.transaction.cut_epoch
    for entry in ended:
        if entry.cut is not None and episode.name in (entry.partitions or (episode.name,)):
            cut, epoch = CUTS[entry.cut], entry.marker_epoch
    return ObservedProducer(
        episode=episode,
        context=context,
        scanned=contexts.batches.get(episode.key),
        is_described=is_described,
        open=None if row is None else facts.open.get((row, producer_id)),
        entry=facts.entries.get(producer_id),
        ended=ended,
        transactions=facts.transactions,
        cut=cut,
        cut_epoch=epoch,
    )


def describe_producer(seen: ObservedProducer) -> EpisodeTransaction:
    """Return what is known of the producer, with what this round adds."""
    before, entry = seen.episode.transaction, seen.entry
    last = seen.ended[-1] if seen.ended else None
    timeouts = (source.timeout for source in (entry, last) if source is not None)
    timeout = next((timeout for timeout in timeouts if timeout is not None), None)
    names = [source.transactional_id for source in (entry, last) if source is not None]
    return replace(
        before,
        is_transactional=_is_transactional(seen),
        transactional_id=next(iter(names), before.transactional_id),
        timeout_ms=before.timeout_ms if timeout is None else int(timeout.total_seconds() * 1000),
        cut=seen.cut,
        cut_epoch=seen.cut_epoch,
    )


def _is_transactional(seen: ObservedProducer) -> bool | None:
    """Return whether the producer is transactional; what was once seen is kept, None: not known."""
    before, episode = seen.episode.transaction.is_transactional, seen.episode
    if before or seen.entry is not None or seen.open is not None or seen.ended:
        return True
    if any(rejection.form in IN_TRANSACTIONS for rejection in episode.rejections):
        return True
    batches = () if seen.scanned is None else seen.scanned.batches
    if (seen.scanned is not None and seen.scanned.markers) or any(
        batch.is_transactional for batch in batches
    ):
        return True
    if any(batch.is_transactional is False for batch in batches):
        return False
    return False if _has_no_id(seen) else before


def _has_no_id(seen: ObservedProducer) -> bool:
    """Whether the coordinators were queried for this producer, and none knows it."""
    transactions = seen.transactions
    if not transactions.was_ever_used:
        return True
    return (
        seen.episode.producer_id in transactions.resolved
        and transactions.is_complete
        and transactions.visibility is not IdVisibility.UNPROVEN
    )
