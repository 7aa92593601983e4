"""Rounds over one partition, orders-0, that broker 1 leads in epoch 5, one second apart.

An observation says what a round sees; lines are read after the observation of their round, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.broker_log import BrokerLog, LogEvent
from rules.facts.column import Column, Ragged
from rules.facts.episodes import Episode
from rules.facts.gap import Gap
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, advance
from rules.facts.producers import Producers, ProducerState
from rules.facts.snapshot import Snapshot
from rules.loss.remembered import remember_losses
from rules.sequence.advance import ignore_client_metrics, with_sequences
from rules.view import View
from tests.factories import at, epoch_ends, no_producers, offsets, partitions, snapshot, topic_id

NAME: Final = TopicPartition("orders", 0)
ALLOWED: Final = Column.of([1])
PATIENCE: Final = 130.0  # seconds: above the delivery timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One round; by default nothing happened."""

    second: float
    lines: Sequence[LogEvent] = ()
    leader: int | None = 1
    epoch: int | None = 5
    end: int = 100  # all three offsets
    isr: tuple[int, ...] = (1, 2, 3)
    is_unclean_allowed: bool = True
    creation: int = 0  # a topic that was created again is another one
    ends: tuple[tuple[int, int, int | None], ...] = ()  # row, epoch, end
    found: Sequence[BatchesOf] = ()
    states: dict[int, ProducerState] | None = None  # by producer id; None: nobody was asked
    gaps: Sequence[Gap] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        placed = partitions(
            {"orders": 1},
            leader=Column.of([self.leader]),
            leader_epoch=Column.of([self.epoch]),
            isr=Ragged.of([self.isr]),
            unclean_election_enabled=Column.of([int(self.is_unclean_allowed)]),
            topic_ids=(topic_id("orders", creation=self.creation),),
        )
        base = snapshot(
            taken_at=at(self.second),
            partitions=placed,
            offsets=offsets(
                1,
                leader_epoch=[self.epoch],
                last_stable_offset=[self.end],
                high_watermark=[self.end],
                log_end_offset=[self.end],
            ),
            epoch_ends=epoch_ends(*self.ends),
            broker_log=BrokerLog(is_read=True, events=tuple(self.lines)),
            batches=tuple(self.found),
            producers=_producers(self.states),
            gaps=tuple(self.gaps),
        )
        return replace(base, **self.more)


def _producers(states: dict[int, ProducerState] | None) -> Producers:
    if states is None:
        return no_producers(1)
    return Producers(observed=np.array([True]), open=(), states={0: states})


def play(
    observations: Iterable[Observation],
    only_failed: Callable[..., str | None] = ignore_client_metrics,
    between: Callable[[Memory], Memory] = lambda memory: memory,
) -> list[View]:
    """Return what the rules are given in each round; `between` two the memory may go elsewhere."""
    views: list[View] = []
    before: Memory | None = None
    for observation in observations:
        seen = observation.snapshot()
        memory = advance(seen, before)
        view = View(snapshot=seen, memory=memory, before=before, now=seen.taken_at)
        view = replace(view, memory=replace(memory, losses=remember_losses(view)))
        views.append(with_sequences(view, only_failed))
        before = between(views[-1].memory)
    return views


def watched(*observations: Observation) -> Episode:
    """Return the only episode after these rounds."""
    [episode] = play(observations)[-1].memory.sequences.episodes
    return episode


def verdict(*observations: Observation) -> tuple[str, str, str]:
    """Return class, phase and reason of the only episode after these rounds."""
    said = watched(*observations).verdict
    return str(said.class_), str(said.phase), str(said.reason)


def batch(
    offset: int,
    sequence: int,
    count: int = 1,
    *,
    leader_epoch: int = 5,
    epoch: int = 0,
    transactional: bool = False,
) -> BatchSeen:
    """Return a batch of `count` records that begins at these."""
    return BatchSeen(
        base_offset=offset,
        last_offset=offset + count - 1,
        leader_epoch=leader_epoch,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_sequence=(sequence + count - 1) % 2**31,
        record_count=count,
        is_transactional=transactional,
    )


def marker(
    offset: int, *, leader_epoch: int = 5, epoch: int = 0, commit: bool | None = None
) -> MarkerSeen:
    """Return the end of a transaction."""
    return MarkerSeen(
        offset=offset, leader_epoch=leader_epoch, producer_epoch=epoch, is_commit=commit
    )


def found(
    *batches: BatchSeen,
    markers: tuple[MarkerSeen, ...] = (),
    observed: tuple[int, int] = (0, 1000),
    producer_id: int = 7,
    largest: int | None = 1,
) -> BatchesOf:
    """Return what was found of producer 7 in these offsets."""
    return BatchesOf(
        name=NAME,
        producer_id=producer_id,
        batches=batches,
        markers=markers,
        scanned_from=observed[0],
        scanned_to=observed[1],
        largest_batch=largest,
    )


def remembered(sequence: int | None, *, epoch: int = 0) -> dict[int, ProducerState]:
    """Return what the leader remembers of producer 7."""
    state = ProducerState(producer_epoch=epoch, last_sequence=sequence, last_record_at=None)
    return {7: state}
