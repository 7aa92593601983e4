"""Which producers without a transaction were sampled on each partition, and when.

Remembered are producers that are not idempotent, together as one per partition, and idempotent ones by their
id. Transactional ones are not: their transactional id names them over a restart.
Times are microseconds since 1970-01-01 UTC: `seen` by our own clock, `record` set by producers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from rules.facts.batch_samples import PartitionSample, WriterSample
from rules.facts.identity import TopicId, TopicPartition, are_different
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND

REMEMBERED_FOR: Final = timedelta(hours=24)  # after a producer was last seen
MOST_PARTITIONS: Final = 2000  # those whose producers were seen last
MOST_WRITERS: Final = 16  # of one partition, those seen last


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One producer on one partition; those that are not idempotent are one, without an id."""

    producer_id: int | None
    producer_epoch: int | None  # last seen
    begins: bool  # the first batch seen of it is the first that this producer id wrote here
    first_offset: int
    last_offset: int
    first_record_us: int | None
    last_record_us: int | None
    first_seen_us: int
    last_seen_us: int
    samples: int  # of the partition, that hold it
    first_sample: int  # the number of the partition's sample
    last_sample: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class WrittenPartition:
    """One partition; the same object as long as it is not sampled again."""

    name: TopicPartition
    topic_id: TopicId | None
    samples: int  # since the first that held a producer without a transaction
    writers: tuple[Writer, ...]  # the one seen last comes last
    has_transactions: bool = False  # since then a batch of a transaction was sampled, too

    @property
    def last_seen_us(self) -> int:
        """When a producer was last seen here."""
        return self.writers[-1].last_seen_us


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterMemory:
    """The partitions by name."""

    partitions: Mapping[TopicPartition, WrittenPartition] = field(default_factory=dict)


def advance_writers(snapshot: Snapshot, now_us: int, old: WriterMemory) -> WriterMemory:
    """Return the memory one round later."""
    index, samples = snapshot.partitions.index, snapshot.batch_samples.partitions
    partitions = dict(old.partitions)
    for sample in samples:
        name = index.topic_partition(sample.row)
        topic_id = snapshot.partitions.topic_id(sample.row)
        before = partitions.pop(name, None)
        if before is None or are_different(before.topic_id, topic_id):
            before = WrittenPartition(name=name, topic_id=topic_id, samples=0, writers=())
        if (after := _sampled(before, sample, now_us)).writers:
            partitions[name] = after
    return _limited(partitions.values(), now_us)


def _sampled(before: WrittenPartition, sample: PartitionSample, now_us: int) -> WrittenPartition:
    writers = {writer.producer_id: writer for writer in before.writers}
    number = before.samples + 1
    for seen in sample.writers:
        if not seen.is_transactional:
            old = writers.pop(seen.producer_id, None)
            fresh = _writer(seen, number, now_us)
            writers[seen.producer_id] = fresh if old is None else _join(old, fresh)
    return replace(
        before,
        samples=number,
        writers=tuple(writers.values())[-MOST_WRITERS:],
        has_transactions=before.has_transactions
        or any(seen.is_transactional for seen in sample.writers),
    )


def _writer(seen: WriterSample, number: int, now_us: int) -> Writer:
    first, last = seen.first_record_at, seen.last_record_at
    return Writer(
        producer_id=seen.producer_id,
        producer_epoch=seen.producer_epoch,
        begins=seen.begins,
        first_offset=seen.first_offset,
        last_offset=seen.last_offset,
        first_record_us=None if first is None else microseconds(first),
        last_record_us=None if last is None else microseconds(last),
        first_seen_us=now_us,
        last_seen_us=now_us,
        samples=1,
        first_sample=number,
        last_sample=number,
    )


def _join(old: Writer, new: Writer) -> Writer:
    """Return one producer with the beginning of the older state and the end of the newer one."""
    return replace(
        new,
        begins=old.begins,
        first_offset=old.first_offset,
        first_record_us=old.first_record_us,
        first_seen_us=old.first_seen_us,
        samples=old.samples + new.samples,
        first_sample=old.first_sample,
    )


def _limited(partitions: Iterable[WrittenPartition], now_us: int) -> WriterMemory:
    """Forget the producers that were not seen for a day, and the partitions beyond the limit."""
    oldest = now_us - REMEMBERED_FOR // MICROSECOND
    recent = [
        partition
        if partition.writers[0].last_seen_us >= oldest
        else replace(
            partition, writers=tuple(w for w in partition.writers if w.last_seen_us >= oldest)
        )
        for partition in partitions
        if partition.last_seen_us >= oldest
    ]
    if len(recent) > MOST_PARTITIONS:
        recent = sorted(recent, key=lambda each: each.last_seen_us)[-MOST_PARTITIONS:]
    return WriterMemory(partitions={partition.name: partition for partition in recent})


def merge_writers(stored: WriterMemory, seen: WriterMemory) -> WriterMemory:
    """Merge what an earlier process stored; its samples come before those of this one."""
    merged = dict(stored.partitions)
    for name, partition in seen.partitions.items():
        before = stored.partitions.get(name)
        is_other = before is None or are_different(before.topic_id, partition.topic_id)
        merged[name] = partition if before is None or is_other else _append(before, partition)
    return WriterMemory(partitions=merged)


def _append(before: WrittenPartition, after: WrittenPartition) -> WrittenPartition:
    writers = {writer.producer_id: writer for writer in before.writers}
    for writer in after.writers:
        old = writers.pop(writer.producer_id, None)
        later = replace(
            writer,
            first_sample=writer.first_sample + before.samples,
            last_sample=writer.last_sample + before.samples,
        )
        writers[writer.producer_id] = later if old is None else _join(old, later)
    return replace(
        after,
        samples=before.samples + after.samples,
        writers=tuple(writers.values())[-MOST_WRITERS:],
        has_transactions=before.has_transactions or after.has_transactions,
    )


def writers_with_times(memory: WriterMemory, change: Callable[[int], int]) -> WriterMemory:
    """Return the memory with our own times changed; those of records are their producers'."""
    return WriterMemory(
        partitions={
            name: replace(
                partition, writers=tuple(_move(writer, change) for writer in partition.writers)
            )
            for name, partition in memory.partitions.items()
        }
    )


def _move(writer: Writer, change: Callable[[int], int]) -> Writer:
    return replace(
        writer,
        first_seen_us=change(writer.first_seen_us),
        last_seen_us=change(writer.last_seen_us),
    )


def latest_writer_time(memory: WriterMemory) -> int:
    """Return the latest remembered time of our own, 0 where there is none."""
    return max((each.last_seen_us for each in memory.partitions.values()), default=0)
