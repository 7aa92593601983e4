"""What transactions cost in the last minutes, by transactional id and by coordinator.

The records of a partition are what its high watermark has moved, without the markers that were written there. Several
transactional ids may write to one partition: then its records are known and whose they are is not. Such an id gets a
share by its markers, which is a mean over all of them, and an upper bound, which are all of these records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Final, Protocol, Self, TypeVar

from rules.facts.column import Column
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.matching import matching_rows
from rules.facts.partitions import PartitionIndex
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.transaction_costs import (
    INTERNAL,
    CoordinatorMarkers,
    CostMemory,
    CountedTransactions,
    Sampled,
    SampledWrites,
)
from rules.view import View

# Of a transaction, at least: its partitions, the decision, the end.
STATE_RECORDS: Final = 3
# Sampled on each partition of a transactional id, before it is judged by samples.
ENOUGH_MARKERS: Final = 20
ENOUGH_IDS: Final = 100  # of all coordinators, before their share is judged
UNEVEN: Final = 2  # times the mean


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCost:
    """What samples of batches show of the transactions of one transactional id, on all its partitions."""

    records_at_most: float  # per transaction, as if each partition had as many as the fullest
    bytes_per_record: float | None  # as compressed as they are; None: no batch with records


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCost:
    """The transactions of one transactional id within the window."""

    transactional_id: str
    counted: CountedTransactions
    records: float | None  # its own, or its share of shared partitions; None: an end was not read
    records_at_most: int | None  # all records of its partitions
    is_shared: bool  # whether further transactional ids ended transactions on its partitions
    sample: SampledCost | None = None  # None: too little of it was sampled

    @property
    def records_per_transaction(self) -> float | None:
        """Return the mean; exact where no other transactional id writes to its partitions."""
        return None if self.records is None else self.records / self.counted.transactions

    @property
    def records_per_transaction_at_most(self) -> float | None:
        """Return the least of what bounds the mean: all records of its partitions, and samples of its own."""
        total = self.records_at_most
        bounds = [] if total is None else [total / self.counted.transactions]
        bounds += [] if self.sample is None else [self.sample.records_at_most]
        return min(bounds, default=None)

    @property
    def bytes_per_transaction(self) -> float | None:
        """Return the mean size, by samples of batches; None without any, or without the records."""
        each = None if self.sample is None else self.sample.bytes_per_record
        records = self.records_per_transaction
        return None if each is None or records is None else each * records

    @property
    def markers_per_transaction(self) -> float:
        """Return how many partitions a transaction marks, the offsets of groups too."""
        return self.counted.markers / self.counted.transactions

    @property
    def marker_share(self) -> float | None:
        """Return how much of the offsets that it used are markers, 0 to 1."""
        written = None if self.records is None else self.records + self.counted.record_markers
        return self.counted.record_markers / written if written else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorCost:
    """The transactions of one coordinator within the window."""

    coordinator: BrokerId
    transactional_ids: int  # that ended a transaction there, as far as ids are counted one by one
    markers: CoordinatorMarkers

    @property
    def transactions(self) -> int:
        """Return how many ended whose decision was read."""
        return self.markers.durations.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the transactions of a cluster cost within the window."""

    window: timedelta = timedelta(0)
    is_whole: bool = True  # False: not all that ended was read
    ids: Sequence[TransactionCost] = ()  # by name
    others: CountedTransactions = field(default_factory=CountedTransactions)
    coordinators: Sequence[CoordinatorCost] = ()  # by broker id

    @property
    def seconds(self) -> float:
        """Return the length of the window."""
        return self.window.total_seconds()

    def per_second(self, number: float) -> float | None:
        """Return a number of the window per second, None before there is a window."""
        return number / self.seconds if self.seconds else None


def window_of(memory: CostMemory, now_us: int) -> timedelta:
    """Return since when transactions have been counted."""
    if not memory.blocks:
        return timedelta(0)
    return max(now_us - memory.blocks[0].since_us, 0) * MICROSECOND


def moved_ends(memory: CostMemory, snapshot: Snapshot) -> Column:
    """Return by row how many offsets were added within the window; absent where an end was not read.

    A high watermark that moved back lost records or is of another log: that is no number of records.
    """
    if not memory.blocks:
        return Column.absent(len(snapshot.partitions))
    first = memory.blocks[0]
    rows = matching_rows(snapshot.partitions, first.partitions, needs_id=False)
    moved = snapshot.offsets.high_watermark - first.high_watermark.take(rows)
    return moved.where(moved.values >= 0)


def costs_of(view: View) -> Costs:
    """Return the costs of a round."""
    memory = view.memory.costs
    blocks = memory.blocks
    by_id = _summed(block.by_id for block in blocks)
    places = _places_of(view)
    return Costs(
        window=window_of(memory, microseconds(view.now)),
        is_whole=memory.is_whole,
        ids=[places.cost_of(name, by_id[name]) for name in sorted(by_id)],
        others=reduce(
            CountedTransactions.plus, (block.others for block in blocks), CountedTransactions()
        ),
        coordinators=coordinator_costs(view),
    )


class _Summable(Protocol):
    """What is counted in blocks."""

    def plus(self, other: Self) -> Self:
        """Return the sum with what was counted later."""


_KeyT = TypeVar("_KeyT")
_CountT = TypeVar("_CountT", bound=_Summable)


def _summed(blocks: Iterable[Mapping[_KeyT, _CountT]]) -> dict[_KeyT, _CountT]:
    counted: dict[_KeyT, _CountT] = {}
    for block in blocks:
        for name, more in block.items():
            counted[name] = counted[name].plus(more) if name in counted else more
    return counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Places:
    """What is known of the partitions that transactions wrote to."""

    moved: Column  # by row of the index
    index: PartitionIndex
    markers: Mapping[TopicPartition, int]
    sampled: Sampled

    def cost_of(self, name: str, counted: CountedTransactions) -> TransactionCost:
        """Return the cost of one transactional id."""
        records = self.records_of(counted.partitions) if counted.partitions else None
        markers = sum(self.markers.get(place, 0) for place in counted.partitions or ())
        share = counted.record_markers / markers if markers else 0.0
        return TransactionCost(
            transactional_id=name,
            counted=counted,
            records=None if records is None else records * share,
            records_at_most=records,
            is_shared=markers > counted.record_markers,
            sample=self.sample_of(counted),
        )

    def sample_of(self, counted: CountedTransactions) -> SampledCost | None:
        """Return what was sampled of an id; None while one of its partitions showed too few markers.

        A sample holds a few offsets of each partition, so that partitions are compared by themselves: the sum of all
        would hide the one that has nearly all records.
        """
        keys = [(counted.producer_id or 0, name) for name in counted.partitions or ()]
        samples = [self.sampled.get(key, SampledWrites()) for key in keys]
        if not samples or any(sample.markers < ENOUGH_MARKERS for sample in samples):
            return None
        per_marker = max(sample.records / sample.markers for sample in samples)
        records = sum(sample.records for sample in samples)
        size_bytes = sum(sample.size_bytes for sample in samples)
        return SampledCost(
            records_at_most=per_marker * counted.record_markers / counted.transactions,
            bytes_per_record=size_bytes / records if records else None,
        )

    def records_of(self, names: Iterable[TopicPartition]) -> int | None:
        """Return all records of partitions; None where the end of one was not read, or does not fit."""
        records = 0
        for name in names:
            row = self.index.row(name.topic, name.partition)
            moved = None if row is None else self.moved[row]
            markers = self.markers.get(name, 0)
            if moved is None or moved < markers:
                return None
            records += moved - markers
        return records


def _places_of(view: View) -> _Places:
    memory = view.memory.costs
    markers: dict[TopicPartition, int] = {}
    for block in memory.blocks:
        for name, count in block.markers_on.items():
            markers[name] = markers.get(name, 0) + count
    return _Places(
        moved=moved_ends(memory, view.snapshot),
        index=view.snapshot.partitions.index,
        markers=markers,
        sampled=_summed(block.sampled for block in memory.blocks),
    )


def coordinator_costs(view: View) -> list[CoordinatorCost]:
    """Return the costs of every broker that is registered, or was a coordinator within the window."""
    blocks = view.memory.costs.blocks
    latest = {
        name: counted.coordinator for block in blocks for name, counted in block.by_id.items()
    }
    ids = Counter(latest.values())
    brokers = {broker for block in blocks for broker in block.by_coordinator}
    brokers |= {broker.broker_id for broker in view.snapshot.brokers}
    return [
        CoordinatorCost(
            coordinator=broker,
            transactional_ids=ids[broker],
            markers=reduce(
                CoordinatorMarkers.plus,
                (
                    block.by_coordinator[broker]
                    for block in blocks
                    if broker in block.by_coordinator
                ),
                CoordinatorMarkers(),
            ),
        )
        for broker in sorted(brokers)
    ]


def mean_records(view: View) -> float | None:
    """Return the records per transaction of the whole cluster; None of none, or where an end was not read.

    The markers of the ids that are only summed count too, so that this one is exact.
    """
    blocks, places = view.memory.costs.blocks, _places_of(view)
    marked = [name for name in places.markers if name.topic not in INTERNAL]
    records = places.records_of(marked) if marked else None
    counted = (each for block in blocks for each in (*block.by_id.values(), block.others))
    transactions = sum(each.transactions for each in counted)
    return records / transactions if transactions and records is not None else None


def uneven_coordinators(costs: Costs) -> frozenset[BrokerId]:
    """Return the coordinators with twice as many transactional ids as the mean of all brokers.

    Ids are spread by a hash over the partitions of `__transaction_state`, and these over brokers: below a hundred ids
    twice the mean is chance.
    """
    total = sum(each.transactional_ids for each in costs.coordinators)
    if total < ENOUGH_IDS:
        return frozenset()
    limit = UNEVEN * total / len(costs.coordinators)
    return frozenset(
        each.coordinator for each in costs.coordinators if each.transactional_ids >= limit
    )
