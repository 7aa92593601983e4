"""Adds lines of brokers' logs to fencing episodes: of coordinators, leaders, and the request log."""

from __future__ import annotations

from datetime import datetime

from rules.facts.broker_log import (
    EpochRejected,
    Origin,
    ProducerInitialised,
    ProducerRequest,
    TransactionTimedOut,
    partition_of,
)
from rules.facts.fencing import (
    KEPT_ABORTS,
    CutTransaction,
    FencedRequests,
    RejectionSource,
    Takeover,
    key_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.transaction_log import Cut, Initialisation
from rules.fencing.gathered import Gathered, add_requests
from rules.fencing.takeovers import add_initialised, add_takeover, is_same_cut, with_cut


def add_lines(gathered: Gathered) -> None:
    """Add all lines of a round; those that are about no producer's fencing are left alone."""
    for event in gathered.snapshot.broker_log.events:
        if isinstance(event, ProducerInitialised):
            _add_line_initialised(gathered, event)
        elif isinstance(event, TransactionTimedOut):
            _add_timed_out(gathered, event)
        elif isinstance(event, ProducerRequest):
            _add_request(gathered, event)
        elif isinstance(event, EpochRejected):
            _add_epoch_rejected(gathered, event)


def _add_line_initialised(gathered: Gathered, event: ProducerInitialised) -> None:
    """Take a coordinator's line where its log is not read, or lacks the initialisation."""
    if event.producer_epoch == 0 or event.origin.at is None:
        return
    initialised = Initialisation(
        transactional_id=event.transactional_id,
        producer_id=event.producer_id,
        producer_epoch=event.producer_epoch,
        at=event.origin.at,
    )
    add_initialised(gathered, initialised, is_line=True)


def _add_timed_out(gathered: Gathered, event: TransactionTimedOut) -> None:
    at = _at(gathered, event.origin)
    cut = CutTransaction(cut=Cut.TIMEOUT, ended_us=at)
    episode = gathered.add(event.transactional_id, None)
    if any(is_same_cut(each, cut) for each in episode.cuts):
        return
    gathered.put(episode, cuts=with_cut(episode, cut), cut_count=episode.cut_count + 1)


def _add_request(gathered: Gathered, event: ProducerRequest) -> None:
    """Take a line of the request log; of an id without an episode only what fences or was fenced."""
    name = event.transactional_id
    if event.error is not None:
        _add_rejected_request(gathered, event)
    elif name is None:
        return
    elif (
        event.request == "InitProducerId" and event.producer_epoch and event.producer_id is not None
    ):
        takeover = Takeover(
            producer_id=event.producer_id,
            producer_epoch=event.producer_epoch,
            at_us=_at(gathered, event.origin),
            is_own=event.is_own_epoch,
            instance=event.instance,
        )
        add_takeover(gathered, name, takeover)
        episode = gathered.add(name, None)
        if not episode.has_request_log:
            gathered.put(episode, has_request_log=True)
    elif event.is_commit is False and event.producer_epoch is not None:
        aborting = gathered.open.get(key_of(name, None))
        if aborting is not None:
            epochs = sorted({*aborting.aborted_by_owner, event.producer_epoch})
            gathered.touched.add(aborting.key)
            gathered.put(aborting, aborted_by_owner=tuple(epochs)[-KEPT_ABORTS:])


def _add_rejected_request(gathered: Gathered, event: ProducerRequest) -> None:
    if event.transactional_id is None and event.request == "Produce":
        return  # of an idempotent producer: the leader's own line has its id
    at = _at(gathered, event.origin)
    requests = FencedRequests(
        source=RejectionSource.REQUEST_LOG,
        request=event.request,
        error=event.error or "",
        first_us=at,
        last_us=at,
        producer_id=event.producer_id,
        producer_epoch=event.producer_epoch,
        instance=event.instance,
    )
    producer_id = event.producer_id if event.transactional_id is None else None
    add_requests(gathered, event.transactional_id, producer_id, requests)


def _add_epoch_rejected(gathered: Gathered, event: EpochRejected) -> None:
    if event.producer_id is None:
        return  # before Kafka 2.2 no line names the producer
    at = _at(gathered, event.origin)
    requests = FencedRequests(
        source=RejectionSource.BROKER_LOG,
        request="Produce",
        error="INVALID_PRODUCER_EPOCH",
        first_us=at,
        last_us=at,
        producer_id=event.producer_id,
        producer_epoch=event.producer_epoch,
        current_epoch=event.current_epoch,
        name=partition_of(event),
    )
    owner = gathered.owner_of(event.producer_id)
    add_requests(gathered, owner, None if owner else event.producer_id, requests)


def _at(gathered: Gathered, origin: Origin) -> int:
    """Return the time of a line, or that of the round where it has none."""
    at: datetime = gathered.snapshot.taken_at if origin.at is None else origin.at
    return microseconds(at)
