"""Producers of episodes and of transactions, for what applications logged about them."""

from __future__ import annotations

from collections.abc import Mapping

from rules.exceptions.relating import KnownProducer
from rules.facts.episodes import Episode
from rules.facts.times import time_of
from rules.facts.transactions import Transaction
from rules.transactions.listing import ListedTransaction


def producer_of_episode(episode: Episode, transactions: Mapping[int, Transaction]) -> KnownProducer:
    """Return the producer of an episode, also of one whose transaction is over.

    `transactions` are those that coordinators know now, by producer id.
    """
    producer_id, known = episode.producer_id, episode.transaction.transactional_id
    transaction = None if producer_id is None else transactions.get(producer_id)
    return KnownProducer(
        producer_id=producer_id,
        producer_epoch=episode.shown.producer_epoch,
        transactional_id=known or (None if transaction is None else transaction.transactional_id),
        places=frozenset() if episode.name is None else frozenset({episode.name}),
        begin=time_of(episode.first_seen_us),
        end=time_of(episode.last_seen_us),
    )


def producer_of_transaction(entry: ListedTransaction) -> KnownProducer:
    """Return the producer of an open transaction."""
    return KnownProducer(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        transactional_id=entry.transactional_id,
        places=frozenset(place.name for place in entry.places),
        begin=entry.started_at or entry.first_seen_at,
    )


def producer_of_id(entry: Transaction) -> KnownProducer:
    """Return the producer of a transactional id as its coordinator describes it, open or not."""
    return KnownProducer(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        transactional_id=entry.transactional_id,
        places=entry.partitions or frozenset(),
        begin=entry.started_at,
    )
