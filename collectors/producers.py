"""Collects the producers whose transactions hold back partitions: DescribeProducers, sent to leaders.

Only partitions whose last stable offset does not move are queried: while transactions begin and end it
moves from round to round. Rules may query more: every producer of a partition, or the whole state of
some. It needs READ on the topic. A follower answers too, with what it has replicated, so that the
leader of the same round's placement is queried.
Source: KIP-664.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from collectors.naming import grouped
from collectors.offset_plan import rows_before
from collectors.session import Request, Response, Session, body_of
from collectors.translate import failure_of, left_out, present, timestamp_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_PRODUCERS
from collectors.wire.failure import Failure
from collectors.wire.transaction_answers import (
    ActiveProducer,
    DescribedPartition,
    read_producers,
)
from rules.facts.column import Bools, Column, Int64s, marked
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import Broker, TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.producers import NewestProducers, OpenProducer, Producers, ProducerState
from rules.question import ProducersQuestion

HELD_SECONDS: Final = 1.5  # an offset that stood for less may only seem to stand still
# Partitions in one request: an answer lists every producer that a partition saw within a day, which
# may be some hundred kilobytes of it.
MAX_PER_REQUEST: Final = 1000
# To one leader in a round: a job that checkpoints every minute holds all of its partitions at once.
MAX_REQUESTS: Final = 10
_OPEN_TRANSACTIONS: Final = "open transactions of"

Float64s = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unchanged:
    """Since when each partition's last stable offset is stuck, and when it had its turn."""

    partitions: Partitions
    last_stable_offset: Column
    leader_epoch: Column
    since: Float64s  # monotonic; when this offset was first seen
    turn: Int64s  # number of the round in which it last had its turn, 0: never

    @classmethod
    def first(cls, partitions: Partitions, offsets: Offsets, now: float) -> _Unchanged:
        """Return what is known without an earlier round."""
        rows = len(partitions)
        return cls(
            partitions=partitions,
            last_stable_offset=offsets.last_stable_offset,
            leader_epoch=offsets.leader_epoch,
            since=np.full(rows, now),
            turn=np.zeros(rows, np.int64),
        )

    def on_to(self, newer: _Unchanged) -> _Unchanged:
        """Return the newer state with the memory of this one, which a round without an answer keeps."""
        rows = rows_before(newer.partitions, self.partitions)
        is_known = rows >= 0
        stable, epoch = self.last_stable_offset.take(rows), self.leader_epoch.take(rows)
        since = np.where(is_known, _take(self.since, rows), newer.since)
        unchanged = _is_same(stable, newer.last_stable_offset) & _is_same(epoch, newer.leader_epoch)
        unseen = is_known & ~newer.last_stable_offset.valid
        return _Unchanged(
            partitions=newer.partitions,
            last_stable_offset=_merge_columns(unseen, stable, newer.last_stable_offset),
            leader_epoch=_merge_columns(unseen, epoch, newer.leader_epoch),
            since=np.where(is_known & (unchanged | unseen), since, newer.since),
            turn=np.where(is_known, _take(self.turn, rows), 0),
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some partitions of one leader: one request."""

    leader: Broker
    rows: dict[TopicPartition, int]
    is_first: bool = True  # of those to this leader in this round

    @property
    def request(self) -> Request:
        by_topic = grouped((name.topic, name.partition) for name in self.rows)
        topics = [{"name": name, "partition_indexes": tuple(n)} for name, n in by_topic.items()]
        return Request(self.leader, DESCRIBE_PRODUCERS, body_of(DESCRIBE_PRODUCERS, topics=topics))


@dataclass(slots=True)
class ProducersReader:
    """Queries partitions whose last stable offset is held back, and remembers their producers."""

    _unchanged: _Unchanged | None = None
    _round: int = 0
    _holders: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)

    def known_ids(self) -> frozenset[int]:
        """Return the ids of the producers that were last seen to hold a partition.

        The coordinators are queried for these producer ids in the next round.
        """
        return frozenset(number for holders in self._holders.values() for number in holders)

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        questions: Sequence[ProducersQuestion],
    ) -> Producers:
        """Query the leaders of held partitions, and of those that rules request, once each.

        One request names up to a thousand partitions of a leader; further ones are pipelined.
        """
        self._round += 1
        span = offsets.open_span
        is_open = span.valid & (span.values > 0)
        held = self._held(session.began, partitions, offsets)
        every = _mark_queried(
            partitions, [question for question in questions if question.wants_every]
        )
        stated = _ids_by_row(partitions, questions)
        newest = _newest_by_row(partitions, questions)
        whatever_is_open = every | marked(len(partitions), [*stated, *newest])
        is_queried = _mark_queried(partitions, questions)
        rows = np.flatnonzero((is_open & (held | is_queried)) | whatever_is_open)
        batches = self._batches(session, partitions, rows)
        responses = session.exchange([batch.request for batch in batches])
        self._note_turns(batches, responses)
        described = _read_described(session, batches, responses)
        producers = replace(
            _producers_of(described, every, stated), newest=_newest_of(described, newest)
        )
        self._remember(partitions, rows, producers.observed, producers.open)
        return producers

    def _held(self, now: float, partitions: Partitions, offsets: Offsets) -> Bools:
        """Mark the rows whose offset is unchanged since an earlier round; remember this round."""
        newer = _Unchanged.first(partitions, offsets, now)
        self._unchanged = newer if self._unchanged is None else self._unchanged.on_to(newer)
        held: Bools = now - self._unchanged.since >= HELD_SECONDS
        return held

    def _batches(
        self, session: Session, partitions: Partitions, candidates: Int64s
    ) -> list[_Batch]:
        """Return a batch per thousand rows of a leader; above the limit, the rows that waited longest."""
        if self._unchanged is None or not len(candidates):
            return []
        turn = self._unchanged.turn
        brokers = {int(broker.broker_id): broker for broker in session.brokers}
        leaders = partitions.leader.values[candidates]
        batches: list[_Batch] = []
        for leader in np.unique(leaders).tolist():
            rows = candidates[leaders == leader]
            rows = rows[np.argsort(turn[rows], kind="stable")]
            if leader not in brokers:
                continue  # the offsets of these partitions are a gap already
            most = MAX_PER_REQUEST * MAX_REQUESTS
            _report_waiting(session, partitions, brokers[leader], rows[most:])
            for start in range(0, min(len(rows), most), MAX_PER_REQUEST):
                chosen = np.sort(rows[start : min(start + MAX_PER_REQUEST, most)])
                names = {partitions.index.topic_partition(row): row for row in chosen.tolist()}
                batches.append(_Batch(brokers[leader], names, is_first=start == 0))
        return batches

    def _note_turns(self, batches: Sequence[_Batch], responses: Sequence[Response]) -> None:
        """Note which rows had their turn: those that were answered, and each leader's first request.

        A leader answers one request after the other. The requests that ran out of time come first in the
        next round, except the first one, so that a slow answer does not delay all others again.
        """
        if self._unchanged is None:
            return
        for batch, response in zip(batches, responses, strict=True):
            if batch.is_first or response.failure is None:
                self._unchanged.turn[list(batch.rows.values())] = self._round

    def _remember(
        self,
        partitions: Partitions,
        rows: Int64s,
        observed: Bools,
        producers: Sequence[OpenProducer],
    ) -> None:
        """Remember the producers of partitions that are still held; a failed query keeps the old ones."""
        holders = grouped((producer.row, producer.producer_id) for producer in producers)
        before, self._holders = self._holders, {}
        for row in rows.tolist():
            name = partitions.index.topic_partition(row)
            ids = holders.get(row, ()) if observed[row] else before.get(name, ())
            self._holders[name] = frozenset(ids)


def _take(values: NDArray[Any], rows: Int64s) -> NDArray[Any]:
    """Return the values at `rows`; those of negative rows have no meaning."""
    return values[rows] if len(values) else np.zeros(len(rows), values.dtype)


def _is_same(column: Column, other: Column) -> Bools:
    same: Bools = (column.valid == other.valid) & (column.values == other.values)
    return same


def _merge_columns(mask: Bools, column: Column, other: Column) -> Column:
    return Column(
        np.where(mask, column.values, other.values), np.where(mask, column.valid, other.valid)
    )


def _mark_queried(partitions: Partitions, questions: Sequence[ProducersQuestion]) -> Bools:
    is_queried = np.zeros(len(partitions), np.bool_)
    for question in questions:
        rows = matching_rows(partitions, question.partitions, needs_id=False)
        is_queried |= (rows >= 0) & np.isin(rows, question.rows)
    return is_queried


def _ids_by_row(
    partitions: Partitions, questions: Sequence[ProducersQuestion]
) -> dict[int, frozenset[int]]:
    """Return by row the ids of the producers whose state is requested."""
    ids: dict[int, frozenset[int]] = {}
    for question in questions:
        if question.wants_states_of:
            for row in np.flatnonzero(_mark_queried(partitions, [question])).tolist():
                ids[row] = ids.get(row, frozenset()) | question.wants_states_of
    return ids


def _newest_by_row(
    partitions: Partitions, questions: Sequence[ProducersQuestion]
) -> dict[int, int]:
    """Return by row how many of the producers that wrote last are requested."""
    counts: dict[int, int] = {}
    for question in questions:
        if question.newest_producers:
            for row in np.flatnonzero(_mark_queried(partitions, [question])).tolist():
                counts[row] = max(counts.get(row, 0), question.newest_producers)
    return counts


def _newest_of(
    answered: Iterable[tuple[_Batch, DescribedPartition]], counts: Mapping[int, int]
) -> dict[int, NewestProducers]:
    newest: dict[int, NewestProducers] = {}
    for batch, described in answered:
        row = batch.rows[TopicPartition(described.topic, described.partition)]
        if row in counts:
            ids = described.newest(counts[row])
            newest[row] = NewestProducers(ids=ids, count=len(described.producers))
    return newest


def _read_described(
    session: Session, batches: Sequence[_Batch], responses: Sequence[Response]
) -> list[tuple[_Batch, DescribedPartition]]:
    """Return what the leaders described, and add a gap for each reason why the rest is missing."""
    answered: list[tuple[_Batch, DescribedPartition]] = []
    failed: list[tuple[Failure, str]] = []
    for batch, response in zip(batches, responses, strict=True):
        for name, outcome in _outcomes(batch, response).items():
            if isinstance(outcome, Failure):
                failed.append((outcome, str(name)))
            else:
                answered.append((batch, outcome))
    session.add_gaps(GapScope.PRODUCERS, _OPEN_TRANSACTIONS, failed)
    return answered


def _producers_of(
    answered: Iterable[tuple[_Batch, DescribedPartition]],
    every: Bools,
    stated: Mapping[int, frozenset[int]],
) -> Producers:
    """Return the facts of described partitions, with all epochs and the stated ids where requested."""
    observed = np.zeros(len(every), np.bool_)
    producers: list[OpenProducer] = []
    epochs: dict[int, dict[int, int]] = {}
    states: dict[int, dict[int, ProducerState]] = {}
    for batch, described in answered:
        row = batch.rows[TopicPartition(described.topic, described.partition)]
        observed[row] = True
        producers += [_open(row, producer) for producer in described.open]
        if every[row]:
            epochs[row] = described.epochs()
        if row in stated:
            states[row] = _states(described, stated[row])
    producers.sort(key=lambda producer: (producer.row, producer.start_offset))
    return Producers(observed=observed, open=tuple(producers), epochs=epochs, states=states)


def _outcomes(
    batch: _Batch, response: Response
) -> dict[TopicPartition, DescribedPartition | Failure]:
    described = response.read_by(read_producers)
    if isinstance(described, Failure):
        return dict.fromkeys(batch.rows, described)
    outcomes: dict[TopicPartition, DescribedPartition | Failure] = dict.fromkeys(
        batch.rows, left_out(batch.leader)
    )
    for entry in described:
        name = TopicPartition(entry.topic, entry.partition)
        if name in outcomes:
            needs = f"READ on Topic {entry.topic}"
            rejected = entry.error != codec.NO_ERROR
            outcomes[name] = (
                failure_of(entry.error, batch.leader, needs=needs) if rejected else entry
            )
    return outcomes


def _states(described: DescribedPartition, ids: frozenset[int]) -> dict[int, ProducerState]:
    return {
        int(producer["producer_id"]): ProducerState(
            producer_epoch=int(producer["producer_epoch"]),
            last_sequence=present(int(producer["last_sequence"])),
            last_record_at=timestamp_of(int(producer["last_timestamp"])),
        )
        for producer in described.producers_with(ids)
    }


def _open(row: int, producer: ActiveProducer) -> OpenProducer:
    return OpenProducer(
        row=row,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=present(producer.coordinator_epoch),
        start_offset=producer.start_offset,
        last_record_at=timestamp_of(producer.last_timestamp),
    )


def _report_waiting(session: Session, partitions: Partitions, leader: Broker, rows: Int64s) -> None:
    names = [str(partitions.index.topic_partition(row)) for row in np.sort(rows).tolist()]
    why = f"one round queries {MAX_PER_REQUEST * MAX_REQUESTS:,} partitions of {leader} at most"
    limit = Failure(GapCause.LIMIT, why)
    session.add_gaps(GapScope.PRODUCERS, _OPEN_TRANSACTIONS, [(limit, name) for name in names])
