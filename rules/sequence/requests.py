"""Builds the queries of open episodes: batches around a rejection, the producer's state, its transaction."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rules.facts.episodes import Episode
from rules.facts.identity import TopicPartition
from rules.facts.rejections import Rejection
from rules.question import (
    BatchesQuestion,
    BatchRequest,
    ProducersQuestion,
    Question,
    TransactionsQuestion,
)
from rules.sequence.gathering import row_of
from rules.sequence.numbers import NO_BATCH, last_sequence
from rules.sequence.retention import MAX_QUERYING
from rules.sequence.transaction_outcome import awaited_rejections, awaits_end, is_any_open
from rules.view import View


def questions_of(view: View) -> tuple[Question, ...]:
    """Return the questions of the open episodes for the next round; none where no episode queries."""
    return *_ask_leaders(view), *_ask_coordinators(view.memory.sequences.open.values())


def _ask_coordinators(episodes: Iterable[Episode]) -> Iterable[Question]:
    """Ask for the transactions of producers that may have one open, the newest first."""
    awaited = [
        episode
        for episode in episodes
        if (episode.is_querying and awaited_rejections(episode)) or is_any_open(episode)
    ]
    if awaited:
        newest = sorted(awaited, key=lambda episode: -episode.last_seen_us)[:MAX_QUERYING]
        ids = (episode.producer_id for episode in newest)
        yield TransactionsQuestion(frozenset(number for number in ids if number is not None))


def _ask_leaders(view: View) -> tuple[Question, ...]:
    querying = [episode for episode in view.memory.sequences.open.values() if episode.is_querying]
    rows = sorted(
        {row for episode in querying if (row := row_of(view.snapshot, episode.name)) is not None}
    )
    if not rows:
        return ()
    ids = frozenset(episode.producer_id for episode in querying if episode.producer_id is not None)
    states = ProducersQuestion(
        view.snapshot.partitions, np.array(rows, np.int64), wants_states_of=ids
    )
    requests = tuple(requests for episode in querying for requests in _list_requests(episode))
    return states, BatchesQuestion(requests)


def _list_requests(episode: Episode) -> Iterable[BatchRequest]:
    """Request the batches around the first and the last rejection that are not settled.

    Neither is one of which it is not known how its transaction ended.
    """
    name, producer_id = episode.name, episode.producer_id
    is_in_transaction = bool(episode.transaction.is_transactional)
    open_ones = [
        rejection
        for rejection in episode.rejections
        if not rejection.is_settled or (is_in_transaction and awaits_end(rejection))
    ]
    if name is None or producer_id is None or not open_ones:
        return
    for rejection in dict.fromkeys((open_ones[0], open_ones[-1])):
        yield _around(name, producer_id, rejection)


def _around(name: TopicPartition, producer_id: int, rejection: Rejection) -> BatchRequest:
    last = last_sequence(rejection)
    return BatchRequest(
        name=name,
        producer_id=producer_id,
        offset=rejection.offset,
        sequence=None if last == NO_BATCH else last,
    )
