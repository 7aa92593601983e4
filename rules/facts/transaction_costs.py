"""Remembers what transactions cost in the last minutes: how many, how many markers, and how long those took.

The counts come from the coordinators' log, which every round reads anyway. Beside them stand the end offsets at which
counting began: what a partition's end has moved since, without its markers, is its records. Two blocks of five
minutes follow each other, so that the window is between five and ten minutes long once Tidemark has run for
ten. Nothing of it outlives the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, TypeAlias

from rules.facts.column import Column
from rules.facts.durations import Durations
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerId, TopicPartition
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.transaction_log import EndedTransaction, measured_markers

BLOCK: Final = timedelta(minutes=5)
MAX_IDS: Final = 4000  # transactional ids of one block; the transactions of further ones are summed
# Of one transactional id: with all ids at their limits some 60 MiB. Whoever writes to more is counted, and how
# many records its transactions have is not known.
MAX_PARTITIONS: Final = 256
MAX_SAMPLED: Final = 20_000  # producers on partitions of one block
SLOW: Final = timedelta(seconds=1)  # of markers; a bound of their histogram
# Internal topics that a transaction marks: what else is written there is not its records.
INTERNAL: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTransactions:
    """The transactions of one transactional id, or of several, that ended within a block."""

    transactions: int = 0
    markers: int = 0  # one per transaction and partition, internal topics too
    record_markers: int = 0  # of these, on the partitions of records
    partitions: frozenset[TopicPartition] | None = frozenset()  # of records; None: too many
    marker_durations: Durations = field(default_factory=Durations)
    coordinator: BrokerId | None = None  # of the last one
    producer_id: int | None = None  # of the last one

    def plus(self, other: CountedTransactions) -> CountedTransactions:
        """Return the sum with later transactions."""
        return CountedTransactions(
            transactions=self.transactions + other.transactions,
            markers=self.markers + other.markers,
            record_markers=self.record_markers + other.record_markers,
            partitions=_union(self.partitions, other.partitions),
            marker_durations=self.marker_durations.plus(other.marker_durations),
            coordinator=self.coordinator if other.coordinator is None else other.coordinator,
            producer_id=self.producer_id if other.producer_id is None else other.producer_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorMarkers:
    """How long the markers of one coordinator took, and which leaders the slow ones waited for."""

    durations: Durations = field(default_factory=Durations)
    # Slow transactions by the leaders of the partitions that they marked; one may count for several.
    slow_by_leader: Mapping[BrokerId, int] = field(default_factory=dict)

    def plus(self, other: CoordinatorMarkers) -> CoordinatorMarkers:
        """Return the sum of both."""
        return CoordinatorMarkers(
            durations=self.durations.plus(other.durations),
            slow_by_leader=Counter(self.slow_by_leader) + Counter(other.slow_by_leader),
        )


@dataclass(frozen=True, slots=True)
class SampledWrites:
    """What samples of a partition showed of one producer; a batch counts whole, also one that is cut."""

    records: int = 0
    markers: int = 0
    size_bytes: int = 0  # of the records' batches

    def plus(self, other: SampledWrites) -> SampledWrites:
        """Return the sum of both."""
        return SampledWrites(
            self.records + other.records,
            self.markers + other.markers,
            self.size_bytes + other.size_bytes,
        )


# By producer id and partition.
Sampled: TypeAlias = Mapping[tuple[int, TopicPartition], SampledWrites]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostBlock:
    """What was counted since one round; times in microseconds since 1970-01-01 UTC, by our own clock."""

    since_us: int
    partitions: Partitions  # of that round
    high_watermark: Column  # as it read them
    by_id: Mapping[str, CountedTransactions] = field(default_factory=dict)
    others: CountedTransactions = field(default_factory=CountedTransactions)
    markers_on: Mapping[TopicPartition, int] = field(default_factory=dict)
    by_coordinator: Mapping[BrokerId, CoordinatorMarkers] = field(default_factory=dict)
    sampled: Sampled = field(default_factory=dict)
    is_whole: bool = True  # False: a round could not read all that ended


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMemory:
    """The blocks of one cluster id, the earlier one first; none before the first round."""

    blocks: tuple[CostBlock, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all that ended was read."""
        return all(block.is_whole for block in self.blocks)

    def with_times(self, change: Callable[[int], int]) -> CostMemory:
        """Return it with its times changed."""
        return CostMemory(
            blocks=tuple(replace(block, since_us=change(block.since_us)) for block in self.blocks)
        )


def advance_costs(snapshot: Snapshot, now_us: int, before: CostMemory) -> CostMemory:
    """Return the memory one round later: what ended counts for the block that ends with this round."""
    *earlier, current = before.blocks or (_begin(snapshot, now_us),)
    if before.blocks:
        current = _count(current, snapshot)
    if (now_us - current.since_us) * MICROSECOND < BLOCK:
        return CostMemory(blocks=(*earlier, current))
    return CostMemory(blocks=(current, _begin(snapshot, now_us)))


def _begin(snapshot: Snapshot, now_us: int) -> CostBlock:
    return CostBlock(
        since_us=now_us,
        partitions=snapshot.partitions,
        high_watermark=snapshot.offsets.high_watermark,
    )


def _count(before: CostBlock, snapshot: Snapshot) -> CostBlock:
    log = snapshot.transaction_log
    is_whole = before.is_whole and log.is_read and log.is_whole
    block = replace(before, is_whole=is_whole, sampled=_add_samples(before.sampled, snapshot))
    if not log.ended:
        return block
    counted = _count_by_id(log.ended)
    by_id, others = _add_ids(block, counted)
    return replace(
        block,
        by_id=by_id,
        others=others,
        markers_on=_add_markers(block.markers_on, log.ended),
        by_coordinator=_add_coordinators(block, counted, snapshot),
    )


def _add_samples(before: Sampled, snapshot: Snapshot) -> Sampled:
    """Return the samples with those of one round, of transactional batches alone."""
    if not snapshot.batch_samples.partitions:
        return before
    sampled = dict(before)
    for key, more in _list_samples(snapshot):
        if key in sampled:
            sampled[key] = sampled[key].plus(more)
        elif len(sampled) < MAX_SAMPLED:
            sampled[key] = more
    return sampled


def _list_samples(
    snapshot: Snapshot,
) -> Iterator[tuple[tuple[int, TopicPartition], SampledWrites]]:
    for sample in snapshot.batch_samples.partitions:
        name = snapshot.partitions.index.topic_partition(sample.row)
        for writer in sample.writers:
            if writer.is_transactional and writer.producer_id is not None:
                written = SampledWrites(writer.record_count, 0, writer.size_bytes)
                yield (writer.producer_id, name), written
        for producer_id, markers in sample.markers:
            yield (producer_id, name), SampledWrites(markers=markers)


# Of the transactions of a round that have the same transactional id and the same coordinator.
_Counted: TypeAlias = dict[tuple[str, BrokerId | None], CountedTransactions]


def _count_by_id(ended: Iterable[EndedTransaction]) -> _Counted:
    grouped: dict[tuple[str, BrokerId | None], list[EndedTransaction]] = {}
    for each in ended:
        grouped.setdefault((each.transactional_id, each.coordinator), []).append(each)
    return {key: _count_transactions(transactions) for key, transactions in grouped.items()}


def _count_transactions(transactions: list[EndedTransaction]) -> CountedTransactions:
    """Count transactions of one id and coordinator, the last one last."""
    record_markers, names = 0, frozenset[TopicPartition]()
    times = Counter(ended.partitions for ended in transactions)  # nearly always one set
    for marked, count in times.items():
        of_records = frozenset(name for name in marked if name.topic not in INTERNAL)
        record_markers += count * len(of_records)
        names |= of_records
    return CountedTransactions(
        transactions=len(transactions),
        markers=sum(count * len(marked) for marked, count in times.items()),
        record_markers=record_markers,
        partitions=names if len(names) <= MAX_PARTITIONS else None,
        marker_durations=Durations().with_more(measured_markers(transactions)),
        coordinator=transactions[-1].coordinator,
        producer_id=transactions[-1].producer_id,
    )


def _add_ids(
    block: CostBlock, counted: _Counted
) -> tuple[dict[str, CountedTransactions], CountedTransactions]:
    """Return the counts by transactional id, and of the ids beyond the limit."""
    by_id, others = dict(block.by_id), block.others
    for (name, _), more in counted.items():
        if name in by_id or len(by_id) < MAX_IDS:
            by_id[name] = by_id[name].plus(more) if name in by_id else more
        else:
            others = others.plus(replace(more, partitions=None))
    return by_id, others


def _union(
    names: frozenset[TopicPartition] | None, more: frozenset[TopicPartition] | None
) -> frozenset[TopicPartition] | None:
    """Return all names, None where they are too many; the same set where nothing is added."""
    if names is None or more is None:
        return None
    union = names if more <= names else names | more
    return union if len(union) <= MAX_PARTITIONS else None


def _add_markers(
    before: Mapping[TopicPartition, int], ended: Iterable[EndedTransaction]
) -> dict[TopicPartition, int]:
    markers = dict(before)
    for names, count in Counter(each.partitions for each in ended).items():
        for name in names:
            markers[name] = markers.get(name, 0) + count
    return markers


def _add_coordinators(
    block: CostBlock, counted: _Counted, snapshot: Snapshot
) -> dict[BrokerId, CoordinatorMarkers]:
    markers = dict(block.by_coordinator)
    for (_, coordinator), more in counted.items():
        if coordinator is not None:
            before = markers.get(coordinator, CoordinatorMarkers())
            durations = before.durations.plus(more.marker_durations)
            markers[coordinator] = replace(before, durations=durations)
    for coordinator, slow in _count_slow(snapshot).items():
        more_slow = CoordinatorMarkers(slow_by_leader=slow)
        markers[coordinator] = markers[coordinator].plus(more_slow)
    return markers


def _count_slow(snapshot: Snapshot) -> dict[BrokerId, Counter[BrokerId]]:
    """Count the transactions with slow markers by coordinator and by the leaders of their partitions."""
    slow: dict[BrokerId, Counter[BrokerId]] = {}
    index, leaders = snapshot.partitions.index, snapshot.partitions.leader
    for ended in snapshot.transaction_log.ended:
        took = ended.marker_duration
        if ended.coordinator is None or took is None or took <= SLOW:
            continue
        rows = (index.row(name.topic, name.partition) for name in ended.partitions)
        brokers = {leaders[row] for row in rows if row is not None}
        waiting = slow.setdefault(ended.coordinator, Counter())
        waiting.update(BrokerId(broker) for broker in brokers if broker is not None)
    return slow
